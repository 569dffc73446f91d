"""A Wasserstein GAN with a gradient penalty: eight clouds on a ring.

The critic is held to slopes of one by the gradient of its own gradient: `create_graph=True`.
"""

import math

import torch
from torch import autograd, nn


def clouds(count):
    angle = torch.randint(0, 8, (count,)) * (2 * math.pi / 8)
    return 2 * torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


def mlp(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs))


def gradient_penalty(critic, real, fake):
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    (slope,) = autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slope.norm(2, dim=1) - 1) ** 2).mean()


def run(steps=800):
    torch.manual_seed(0)
    generator, critic = mlp(4, 2), mlp(2, 1)
    by_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
    by_critic = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    distance, reached = [], []
    for _ in range(steps):
        for _ in range(3):
            real, fake = clouds(128), generator(torch.randn(128, 4)).detach()
            apart = critic(real).mean() - critic(fake).mean()
            loss = gradient_penalty(critic, real, fake) - apart
            by_critic.zero_grad()
            loss.backward()
            by_critic.step()
        loss = -critic(generator(torch.randn(128, 4))).mean()
        by_generator.zero_grad()
        loss.backward()
        by_generator.step()
        distance.append(apart.item())
        with torch.no_grad():
            made = generator(torch.randn(256, 4))
        reached.append((made.norm(dim=1) - 2).abs().mean().item())
    return {"the critic's distance": distance, "distance of what is made to the ring": reached}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.3f} -> {values[-1]:.3f}")
