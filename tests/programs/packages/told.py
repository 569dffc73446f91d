"""tests/programs/packages/told.py: what the programs here share: weights from a seed that NumPy draws, a training loop, JSON lines."""

import json
import sys

import numpy as np
import torch


def fill(module, scale=0.1):
    """Draws every parameter anew; gives the generator."""
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for _, p in module.named_parameters():
            p.copy_(torch.from_numpy((rng.standard_normal(tuple(p.shape)) * scale).astype("f4")))
    return rng


def losses(module, batch, steps=20):
    """The losses of steps of AdamW on one batch, which ``batch(rng)`` makes."""
    words = batch(fill(module))
    module.eval()  # no dropout: the two libraries draw other numbers
    optimizer, found = torch.optim.AdamW(module.parameters(), lr=1e-3), []
    for _ in range(steps):
        loss = module(**words).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def outputs(module, size, scale=0.05):
    """Some numbers of what a network of images gives, and the sum of its gradients' sizes."""
    rng = fill(module, scale)
    module.eval()
    y = module(torch.from_numpy(rng.standard_normal((2, 3, size, size)).astype("f4")))
    y.pow(2).mean().backward()
    gradients = sum(p.grad.abs().sum().item() for p in module.parameters() if p.grad is not None)
    return [*y[0, :3].tolist(), gradients]


def tell(cases):
    """Runs the cases that the command line names, or all; a line of JSON for each."""
    for name in sys.argv[1:] or cases:
        print("told " + json.dumps([name, cases[name]()]), flush=True)
