"""An unrolled GAN: the generator looks some steps of the discriminator ahead.

The steps are functions of the generator, too: its gradient goes through the discriminator's gradients.
"""

import torch
from torch import autograd, nn
from torch.func import functional_call
from torch.nn import functional as F


def pair(count):
    side = torch.randint(0, 2, (count, 1)) * 2.0 - 1
    return torch.cat([2 * side, side], 1) + 0.2 * torch.randn(count, 2)


def loss_of(net, parameters, real, fake):
    on_real, on_fake = (functional_call(net, parameters, (x,)) for x in (real, fake))
    return F.softplus(-on_real).mean() + F.softplus(on_fake).mean()


def ahead(net, real, fake, steps, rate):
    """The discriminator's parameters after some steps, as a function of what is made."""
    parameters = dict(net.named_parameters())
    for _ in range(steps):
        loss = loss_of(net, parameters, real, fake)
        slopes = autograd.grad(loss, list(parameters.values()), create_graph=True)
        parameters = {name: p - rate * g for (name, p), g in zip(parameters.items(), slopes)}
    return parameters


def run(steps=500):
    torch.manual_seed(1)
    generator = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    discriminator = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    by_generator = torch.optim.Adam(generator.parameters(), lr=5e-3, betas=(0.5, 0.999))
    by_discriminator = torch.optim.Adam(discriminator.parameters(), lr=5e-3, betas=(0.5, 0.999))
    losses, balance = [], []
    for _ in range(steps):
        real, fake = pair(128), generator(torch.randn(128, 4))
        loss = loss_of(discriminator, dict(discriminator.named_parameters()), real, fake.detach())
        by_discriminator.zero_grad()
        loss.backward()
        by_discriminator.step()
        later = ahead(discriminator, real, fake, steps=5, rate=0.3)
        by_generator.zero_grad()
        (-loss_of(discriminator, later, real, fake)).backward()
        by_generator.step()
        losses.append(loss.item())
        with torch.no_grad():
            balance.append((generator(torch.randn(256, 4))[:, 0] > 0).float().mean().item())
    return {"the discriminator's loss": losses, "share of what is made on the right side": balance}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.3f} -> {values[-1]:.3f}")
