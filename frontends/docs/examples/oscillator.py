"""A differential equation is solved by a network: a swing that comes to rest.

What is minimised is u'' + 0.4 u' + 4 u, with derivatives of the network by its input, and their gradients by its weights.
"""

import math

import torch
from torch import nn


def slope(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


def true(t):
    quick = math.sqrt(4 - 0.04)
    return torch.exp(-0.2 * t) * (torch.cos(quick * t) + 0.2 / quick * torch.sin(quick * t))


def run(steps=4000):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    t = torch.linspace(0, 4, 64)[:, None].requires_grad_()
    losses, errors = [], []
    for _ in range(steps):
        u = 1 + t**2 * net(t)  # begins at one, at rest
        du = slope(u, t)
        loss = (slope(du, t) + 0.4 * du + 4 * u).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        errors.append((u - true(t)).abs().max().item())
    return {"what the equation lacks": losses, "greatest distance to the solution": errors}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.3f} -> {values[-1]:.4f}")
