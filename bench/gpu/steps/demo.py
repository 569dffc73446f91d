"""bench/gpu/steps/demo.py: the demo on the card: the first losses beside the processor's, then the accuracy of five networks."""

import time

import adjoin
from adjoin.demo import digits
from pieces import DEVICE, SIMULATED, check, figure, left_out
from runner import ROOT

STEPS = 20  # compared: later ones drift apart, for each rounds its own sums
PACKED = ROOT / "bench/gpu/digits.safetensors"
NAMES = ("pictures", "labels", "held_pictures", "held_labels")


def data():
    """What was packed, or scikit-learn's."""
    if not PACKED.exists():
        return digits.load_digits()
    tensors = adjoin.safetensors.load_file(str(PACKED))
    return [tensors[name] for name in NAMES]


def main():
    pictures, labels, held, truth = data()
    steps = 5 if SIMULATED else STEPS
    if SIMULATED:  # convolutions by loops
        pictures, labels = pictures[:8], labels[:8]
    losses = [
        digits.train(pictures, labels, seed=0, epochs=40, device=adjoin.device(where), steps=steps)[1]
        for where in (DEVICE, "cpu")
    ]
    apart = max(abs(a - b) / b for a, b in zip(*losses, strict=True))
    check(f"the losses of {steps} steps are the processor's", apart < 1e-2, f"at most {apart:.1e} of them apart")
    if SIMULATED:
        return left_out("accuracy", "minutes on a simulated card; a card brings it")
    begun, accuracies = time.monotonic(), []
    for seed in range(5):
        model = digits.train(pictures, labels, seed=seed, epochs=40, device=adjoin.device(DEVICE))[0]
        accuracies.append(digits.accuracy(digits.predict(model, held, DEVICE), truth.tolist()))
        print(f"seed {seed}: {accuracies[-1]:.4f}", flush=True)
    figure("five networks", time.monotonic() - begun, "s")
    mean = sum(accuracies) / len(accuracies)
    check("accuracy on what was held out", mean > 0.98, f"{mean:.4f}, wanted above 0.98")


main()
