"""tests/programs/old/lua_style.py: 2016, from Lua: a network of torch.legacy.nn learns two rings by torch.legacy.optim."""

import math

import torch
import torch.legacy.nn as nn
import torch.legacy.optim as optim

torch.manual_seed(1)
angle = torch.rand(200) * 2 * math.pi
ring = torch.LongTensor([0, 1]).repeat(100)
radius = ring.float() + 1
points = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)

net = nn.Sequential()
net.add(nn.Linear(2, 16))
net.add(nn.Tanh())
net.add(nn.ConcatTable().add(nn.Linear(16, 8)).add(nn.Sequential().add(nn.Linear(16, 8)).add(nn.ReLU(True))))
net.add(nn.JoinTable(1))
net.add(nn.Dropout(0.1))
net.add(nn.Linear(16, 2))
net.add(nn.LogSoftMax())
criterion = nn.ClassNLLCriterion()
x, dl_dx = net.flattenParameters()
state = {"learningRate": 0.3, "momentum": 0.9, "dampening": 0.0, "weightDecay": 1e-4}


def feval(x):
    dl_dx.zero_()
    output = net.forward(points)
    loss = criterion.forward(output, ring)
    net.backward(points, criterion.backward(output, ring))
    return loss, dl_dx


first = feval(x)[0]
net.training()
for _step in range(150):
    _, loss = optim.sgd(feval, x, state)
net.evaluate()
loss = criterion.forward(net.forward(points), ring)
right = net.output.max(1)[1].eq(ring).sum()
print(net)
print(f"{first:.3f} {loss:.3f} {float(right) / 200:.2f}")
assert loss < 0.1 * first and right >= 195

# One layer without a bend has its answer by least squares.
a, b = torch.randn(50, 3), torch.randn(50, 1)
line, square = nn.Linear(3, 1, False), nn.MSECriterion(False)
w, dw = line.getParameters()


def evaluate(w):
    dw.zero_()
    value = square.forward(line.forward(a), b)
    line.backward(a, square.backward(line.output, b))
    return value, dw


optim.lbfgs(evaluate, w, {"maxIter": 40, "lineSearch": True})
wanted = torch.linalg.lstsq(a, b).solution
assert (line.weight.t() - wanted).abs().max() < 1e-3, (line.weight, wanted)
