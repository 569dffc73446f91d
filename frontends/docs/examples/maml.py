"""MAML: weights from which one step learns a sine wave it has never seen.

What is trained is the loss after a step of descent: a gradient through a gradient.
"""

import math

import torch
from torch import autograd, nn
from torch.func import functional_call
from torch.nn import functional as F


def waves(count, points):
    height, shift = torch.rand(count, 1, 1) * 4 + 0.5, torch.rand(count, 1, 1) * math.pi
    x = torch.rand(count, points, 1) * 10 - 5
    return x, height * torch.sin(x + shift)


def step(net, parameters, x, y, rate, create_graph):
    loss = F.mse_loss(functional_call(net, parameters, (x,)), y)
    slopes = autograd.grad(loss, list(parameters.values()), create_graph=create_graph)
    return {name: p - rate * g for (name, p), g in zip(parameters.items(), slopes)}


def run(steps=1200, rate=0.02):
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    before, after = [], []
    for _ in range(steps):
        x, y = waves(8, 20)
        parameters = dict(net.named_parameters())
        losses = []
        for i in range(8):  # ten points to learn from, ten to be judged by
            learnt = step(net, parameters, x[i, :10], y[i, :10], rate, create_graph=True)
            losses.append(F.mse_loss(functional_call(net, learnt, (x[i, 10:],)), y[i, 10:]))
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after.append(loss.item())
        with torch.no_grad():
            before.append(F.mse_loss(net(x), y).item())
    return {"error before the step": before, "error after it": after}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.3f} -> {sum(values[-20:]) / 20:.3f}")
