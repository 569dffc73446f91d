"""train.py: a few steps of the digits network here and on the reference backend: the losses agree.

The whole training: python3 -m adjoin.demo.digits --backend acme
"""

import sys

from adjoin.demo import digits

STEPS = 8
pictures, labels, _, _ = digits.load_digits()
curves = {
    device: digits.train(pictures, labels, seed=0, epochs=1, device=device, steps=STEPS)[1]
    for device in (sys.argv[1], "reference")
}
for step, losses in enumerate(zip(*curves.values(), strict=True)):
    print(f"step {step}: " + ", ".join(f"{name} {x:.5f}" for name, x in zip(curves, losses)))
    if abs(losses[0] - losses[1]) > 2e-3:
        sys.exit(f"train: the losses differ at step {step}: {losses[0]} and {losses[1]}")
print("train: the losses agree")
