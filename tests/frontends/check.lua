-- tests/frontends/check.lua: what the Lua binding promises beyond calling ops.
local aj = require "adjoin"

local function same(t, wanted)
  local numbers = t:numbers()
  assert(#numbers == #wanted, #numbers)
  for i, x in ipairs(wanted) do assert(math.abs(numbers[i] - x) < 1e-5, i .. ": " .. numbers[i] .. " is not " .. x) end
end
local function fails(wanted, f, ...)
  local ok, told = pcall(f, ...)
  assert(not ok and told:find(wanted, 1, true), tostring(told))
end

local x = aj.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
same(x + 1, { 2, 3, 4, 5, 6, 7 })
same(2 * x - x, { 1, 2, 3, 4, 5, 6 })
same(x:sum({ 1 }, true), { 6, 15 }) -- lists, a default changed
same(aj.sum(x, 0), { 5, 7, 9 }) -- one number for a list of one
local values, indices = x:max_dim(1) -- several results
same(values, { 3, 6 })
same(indices, { 2, 2 })
assert(indices:dtype() == "int64" and x:dtype() == "float32")
local parts = aj.split(aj.arange(10), 4) -- a list of tensors comes back
assert(#parts == 3 and parts[3]:size(0) == 2)
same(aj.cat({ parts[3], parts[1] }, 0), { 8, 9, 0, 1, 2, 3 }) -- and goes in
assert(aj.mean(x):item() == 3.5 and aj.equal(x, x) == true) -- numbers and booleans
same(aj.zeros({ 2 }, "float64", "cpu"):add_(3), { 3, 3 }) -- dtypes and devices by name, in place
same(aj.where(aj.gt(x, 3), x, 0), { 0, 0, 0, 4, 5, 6 })
same(aj.nn.gelu(aj.tensor { 0 }, "tanh"), { 0 }) -- strings
same(aj.full({}, 2.5), { 2.5 })
same(aj.zeros({ 0, 3 }), {})
same(x:index({ aj.tensor({ 1, 0 }, "int64"), aj.tensor({ 2, 0 }, "int64") }), { 6, 1 })

local z = aj.item(aj.complex(aj.tensor { 1.5 }, aj.tensor { -2 })) -- complex numbers come back and go in
assert(z.re == 1.5 and z.im == -2)
same(aj.imag(aj.mul(x, 2i)), { 2, 4, 6, 8, 10, 12 })
same(aj.real(aj.mul(aj.tensor { 2 }, z)), { 3 })

local w = aj.tensor({ 1, -2 }, "float64"):requires_grad_()
;(w ^ 3):sum():backward()
same(w:grad(), { 3, 12 })
w:set_grad(nil)
assert(w:grad() == nil)
local quiet = aj.no_grad(function() return w * 2 end)
fails("does not require grad", quiet.backward, quiet:sum())

fails("the inner sizes 3 and 2 differ", aj.matmul, x, x)
fails("argument 1: tensor expected, got string", aj.relu, "x")
fails("argument 2: tensor or number expected, got nil", aj.add, x)
fails("argument 1: whole numbers expected, got table", aj.zeros, { 1.5 })
fails("a tensor has no method 'zero_grad'", function() return x:zero_grad() end)
fails("rows differ in length", aj.tensor, { { 1, 2 }, { 3 } })
fails("no such", aj.load_plugin, "no such.so")
fails("float3", aj.to, x, "float3")

local function resident()
  for line in io.lines "/proc/self/status" do
    local kilobytes = line:match "VmRSS:%s*(%d+)"
    if kilobytes then return tonumber(kilobytes) / 1024 end
  end
end
local before = resident()
for _ = 1, 3000 do aj.ones({ 256, 1024 }) end -- 3 GB in all
assert(resident() - before < 400, resident() - before)
print "everything holds"
