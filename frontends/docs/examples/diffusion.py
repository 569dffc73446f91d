"""Diffusion: noise becomes two moons, a little at each of forty steps.

A network tells the noise in a point; what is drawn goes backwards through the steps.
"""

import math

import torch
from torch import nn

STEPS = 40
BETAS = torch.linspace(1e-3, 0.25, STEPS)
KEPT = (1 - BETAS).cumprod(0)


def moons(count):
    angle, other = math.pi * torch.rand(count), torch.randint(0, 2, (count,)).bool()
    x = torch.where(other, 1 - angle.cos(), angle.cos())
    y = torch.where(other, 0.5 - angle.sin(), angle.sin())
    return torch.stack([x - 0.5, y - 0.25], 1) + 0.04 * torch.randn(count, 2)


class Noise(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(STEPS, 32)
        self.inner = nn.Linear(2, 96)
        self.outer = nn.Sequential(
            nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 2)
        )

    def forward(self, x, t):
        return self.outer(torch.cat([self.inner(x), self.time(t)], 1))


@torch.no_grad()
def drawn(model, count):
    x = torch.randn(count, 2)
    for t in reversed(range(STEPS)):
        noise = model(x, torch.full((count,), t))
        x = (x - BETAS[t] / (1 - KEPT[t]).sqrt() * noise) / (1 - BETAS[t]).sqrt()
        if t:
            x = x + (BETAS[t] * (1 - KEPT[t - 1]) / (1 - KEPT[t])).sqrt() * torch.randn_like(x)
    return x


def run(steps=3000):
    torch.manual_seed(0)
    model = Noise()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses, apart = [], []
    for step in range(steps):
        x, noise, t = moons(128), torch.randn(128, 2), torch.randint(0, STEPS, (128,))
        share = KEPT[t][:, None]
        loss = (model(share.sqrt() * x + (1 - share).sqrt() * noise, t) - noise).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 200 == 0 or step == steps - 1:
            nearest = torch.cdist(drawn(model, 200), moons(1000)).amin(1)
            apart.append(nearest.mean().item())
    return {"error of the noise": losses, "distance of what is drawn to the moons": apart}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.3f} -> {values[-1]:.3f}")
