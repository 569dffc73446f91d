"""bench/gpu/steps/gpt.py: the GPT of tests/programs/gpt.py on the card; losses beside the processor's, then with autocast."""

import importlib.util
import random

import adjoin
from pieces import DEVICE, SIMULATED, check, guarded
from runner import ROOT

STEPS, BATCH = 5 if SIMULATED else 100, 8
COMPARED = 20  # steps; later ones drift apart


def program():
    spec = importlib.util.spec_from_file_location("gpt", ROOT / "tests/programs/gpt.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train(gpt, device, dtype=None):
    """The losses of STEPS steps from the same weights with the same text."""
    model = gpt.build().to(device)
    optimizer = model.configure_optimizers(1e-1, 3e-3, (0.9, 0.95), device)
    letters = sorted(set(gpt.TEXT))
    text = adjoin.tensor([letters.index(c) for c in gpt.TEXT]).to(device)
    draw, size, losses = random.Random(0), model.config.block_size, []
    for _ in range(STEPS):
        begins = [draw.randrange(len(gpt.TEXT) - size) for _ in range(BATCH)]
        x, y = (adjoin.stack([text[i + by : i + by + size] for i in begins]) for by in (0, 1))
        with adjoin.autocast(device, dtype=dtype, enabled=dtype is not None):
            loss = model(x, y)[1]
        optimizer.zero_grad()
        loss.backward()
        adjoin.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    gpt = program()
    there, here = train(gpt, DEVICE), train(gpt, "cpu")
    apart = max(abs(a - b) / b for a, b in zip(there[:COMPARED], here, strict=False))
    told = f"{len(there)} steps: {there[0]:.4f} .. {there[-1]:.4f}, the processor's {here[0]:.4f} .. {here[-1]:.4f}"
    check("losses are the processor's", apart < 1e-2, f"{told}; at most {apart:.1e} of them apart")
    check("it learns", there[-1] < there[0] * (0.99 if SIMULATED else 0.5), f"{there[0]:.4f} .. {there[-1]:.4f}")
    with guarded("autocast to bfloat16 learns alike"):
        halves = train(gpt, DEVICE, adjoin.bfloat16)
        assert abs(halves[-1] - there[-1]) < 0.15 * there[0], f"{halves[-1]:.4f}, without it {there[-1]:.4f}"


main()
