-- digits.lua: the digits demo in Lua: the network, steps and numbers of `python -m adjoin.demo.digits`.
--
--   adjoin bindgen --lang lua --out adjoin.lua && python -m adjoin.demo.digits --data digits.safetensors
--   ADJOIN_LIB=$(adjoin config --libdir) luajit digits.lua digits.safetensors [EPOCHS [SEED]]
local aj = require "adjoin"
local F = aj.nn

local EPOCHS, SEED = tonumber(arg[2] or 40), tonumber(arg[3] or 0)
local BATCH, RATE, RISE, DECAY, SMOOTHING = 64, 1e-2, 40, 0.05, 0.1

local params, means, squares, counts = {}, {}, {}, {}
local function param(t)
  params[#params + 1] = t:requires_grad_()
  means[#means + 1], squares[#squares + 1], counts[#counts + 1] = aj.zeros_like(t), aj.zeros_like(t), aj.zeros({})
  return t
end

-- What layers begin with: a uniform bound of 1 / sqrt(fan_in).
local function uniform(shape, fan)
  local bound = math.sqrt(3) * math.sqrt(2 / 6) / math.sqrt(fan)
  return param(aj.empty(shape):uniform_(-bound, bound))
end

-- A 3 x 3 convolution that keeps the size, normalization over the batch, relu.
local function block(from, to)
  local weight = uniform({ to, from, 3, 3 }, from * 9)
  local scale, shift = param(aj.ones({ to })), param(aj.zeros({ to }))
  local mean, var = aj.zeros({ to }), aj.ones({ to })
  return function(x, training)
    x = F.conv2d(x, weight, nil, 1, 1)
    return aj.relu(F.batch_norm(x, mean, var, scale, shift, training))
  end
end

local function network()
  local first, second, third = block(1, 16), block(16, 32), block(32, 64)
  local weight = uniform({ 10, 256 }, 256)
  local bias = param(aj.empty({ 10 }):uniform_(-1 / 16, 1 / 16))
  return function(x, training) -- (N, 1, 8, 8) to logits (N, 10)
    x = F.max_pool2d(second(first(x, training), training), 2)
    x = F.max_pool2d(third(x, training), 2)
    return F.linear(x:flatten(1), weight, bias)
  end
end

-- Each picture moved by -1, 0 or 1 pixel along both axes, at random; zeros come in.
local function shifted(pictures)
  local count, side = pictures:size(0), pictures:size(2)
  local padded = F.pad(pictures, { 1, 1, 1, 1 }):squeeze_dim(1)
  local moves, steps = aj.randint_low(0, 3, { 2, count, 1 }), aj.arange(side)
  local rows, columns = (moves:select(0, 0) + steps):unsqueeze(2), (moves:select(0, 1) + steps):unsqueeze(1)
  return padded:index({ aj.arange(count):reshape({ count, 1, 1 }), rows, columns }):unsqueeze(1)
end

-- AdamW, one pass over all parameters.
local function step(rate)
  local grads = {}
  for i, p in ipairs(params) do grads[i] = p:grad() end
  aj.no_grad(aj.fused_adam_, params, grads, means, squares, {}, counts, rate, 0.9, 0.999, 1e-8, DECAY, true, false)
end

local data = aj.load_safetensors(arg[1])
aj.manual_seed(SEED)
local net = network()
local count = data.pictures:size(0)
local total = EPOCHS * math.ceil(count / BATCH)
local rise, done = math.min(RISE, math.floor(total / 2)), 0
for epoch = 0, EPOCHS - 1 do
  local sum, batches = 0, aj.split(aj.randperm(count), BATCH)
  for _, batch in ipairs(batches) do
    local logits = net(shifted(data.pictures:index_select(0, batch)), true)
    local loss = F.cross_entropy(logits, data.labels:index_select(0, batch), nil, -100, "mean", SMOOTHING)
    for _, p in ipairs(params) do p:set_grad(nil) end
    loss:backward()
    local share = done < rise and (done + 1) / (rise + 1) or (1 + math.cos(math.pi * (done - rise) / (total - rise))) / 2
    step(RATE * share)
    done, sum = done + 1, sum + loss:item()
  end
  print(("epoch %d: loss %.9g"):format(epoch, sum / #batches))
end
local right = aj.no_grad(function() return net(data.held_pictures, false):argmax(1):eq(data.held_labels):sum():item() end)
print(("held-out accuracy: %.4f"):format(right / data.held_labels:size(0)))
