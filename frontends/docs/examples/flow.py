"""A normalizing flow: a distribution with a density, learnt from its samples.

Coupling layers that can be turned round; what is minimised is -log p of the samples, with the logarithm of the volume.
"""

import torch
from torch import distributions, nn


class Coupling(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.first = first
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))

    def parts(self, x):
        return (x[:, :1], x[:, 1:]) if self.first else (x[:, 1:], x[:, :1])

    def joined(self, fixed, moved):
        return torch.cat([fixed, moved] if self.first else [moved, fixed], 1)

    def forward(self, x):
        fixed, moved = self.parts(x)
        scale, shift = self.net(fixed).chunk(2, 1)
        scale = scale.tanh()
        return self.joined(fixed, moved * scale.exp() + shift), scale.sum(1)

    def inverse(self, y):
        fixed, moved = self.parts(y)
        scale, shift = self.net(fixed).chunk(2, 1)
        return self.joined(fixed, (moved - shift) * (-scale.tanh()).exp())


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 0) for i in range(6))
        self.base = distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))

    def log_prob(self, x):
        volume = 0
        for layer in self.layers:
            x, more = layer(x)
            volume = volume + more
        return self.base.log_prob(x) + volume

    @torch.no_grad()
    def sample(self, count):
        x = self.base.sample((count,))
        for layer in reversed(self.layers):
            x = layer.inverse(x)
        return x


def banana(count):
    x = torch.randn(count, 2)
    return torch.stack([x[:, 0], 0.3 * x[:, 1] + x[:, 0] ** 2 - 1], 1)


def run(steps=400):
    torch.manual_seed(0)
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    entropy = distributions.Normal(0, 1).entropy() + distributions.Normal(0, 0.3).entropy()  # the least there is
    losses = []
    for _ in range(steps):
        loss = -flow.log_prob(banana(256)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() - entropy.item())
    return {"-log p above its least": losses}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.3f} -> {values[-1]:.3f}")
