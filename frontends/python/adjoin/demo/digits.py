"""adjoin.demo.digits: trains a small convolutional network to read the digits that ship with
scikit-learn.

1,797 grey pictures of 8 x 8 (E. Alpaydin and C. Kaynak, 1998). Every fourth picture is held out: it
is neither trained on nor looked at before the end of a run. Settings were chosen on a part of the
other three quarters. The last line printed is the mean accuracy of all seeds on what was held out.
"""

import argparse
import json
import math
import os
import sys
import time

import adjoin
from adjoin import nn, optim, safetensors
from adjoin.nn import functional as F
from adjoin.utils import plots
from adjoin.utils.progress import Bar

CLASSES = 10
BATCH = 64
RATE = 1e-2  # of AdamW, at the top: a linear rise, then half a cosine down to zero
RISE = 40  # steps
DECAY = 0.05
SMOOTHING = 0.1  # share of the target that is spread over all classes


class DigitNet(nn.Module):
    """Pictures (N, 1, 8, 8) with values in [0, 1] to logits (N, 10)."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(32)
        self.conv3 = nn.Conv2d(32, 64, 3, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Linear(64 * 2 * 2, CLASSES)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = self.pool(F.relu(self.norm2(self.conv2(x))))
        x = self.pool(F.relu(self.norm3(self.conv3(x))))
        return self.out(x.flatten(1))


def load_digits():
    """(training pictures, training labels, held-out pictures, held-out labels); pictures (N, 1,
    8, 8) in [0, 1]."""
    try:
        from sklearn.datasets import load_digits as read
    except ImportError as error:
        raise SystemExit(
            "digits: scikit-learn, which ships the pictures, is not installed; "
            "install it with: pip install scikit-learn"
        ) from error
    digits = read()
    pictures = adjoin.tensor(digits.images.tolist(), dtype=adjoin.float32).unsqueeze(1) / 16
    labels = adjoin.tensor(digits.target.tolist(), dtype=adjoin.int64)
    count = len(labels)
    kept = adjoin.tensor([i for i in range(count) if i % 4 != 3])
    held = adjoin.tensor([i for i in range(count) if i % 4 == 3])
    return pictures[kept], labels[kept], pictures[held], labels[held]


def shifted(pictures):
    """Each picture moved by -1, 0 or 1 pixel along both axes, at random; zeros come in."""
    count, _, height, width = pictures.shape
    padded = F.pad(pictures, (1, 1, 1, 1)).squeeze(1)
    moves = adjoin.randint(0, 3, (2, count, 1))
    rows = (moves[0] + adjoin.arange(height)).unsqueeze(2)
    columns = (moves[1] + adjoin.arange(width)).unsqueeze(1)
    examples = adjoin.arange(count).view(count, 1, 1)
    return padded[examples, rows, columns].unsqueeze(1)


def train(pictures, labels, *, seed, epochs, device, steps=None, bar=None):
    """Trains one network; returns it with the loss of every step and each epoch's mean loss and
    accuracy."""
    adjoin.manual_seed(seed)
    model = DigitNet().to(device)
    per_epoch = -(-len(labels) // BATCH)
    total = epochs * per_epoch
    optimizer = optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    rise = min(RISE, total // 2)
    schedule = optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: (
            (step + 1) / (rise + 1) if step < rise else (1 + math.cos(math.pi * (step - rise) / (total - rise))) / 2
        ),
    )
    losses, epoch_losses, epoch_accuracies = [], [], []
    for _ in range(epochs):
        order = adjoin.randperm(len(labels))
        begun, right = len(losses), 0
        for batch in order.split(BATCH):
            x = shifted(pictures[batch]).to(device)
            y = labels[batch].to(device)
            logits = model(x)
            loss = F.cross_entropy(logits, y, label_smoothing=SMOOTHING)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            right += (logits.argmax(1) == y).sum().item()
            if bar:
                bar.update(seed=seed, loss=losses[-1])
            if steps is not None and len(losses) >= steps:
                return model, losses, epoch_losses, epoch_accuracies
        epoch_losses.append(sum(losses[begun:]) / (len(losses) - begun))
        epoch_accuracies.append(right / len(labels))
    return model, losses, epoch_losses, epoch_accuracies


def predict(model, pictures, device):
    """The most likely class of each picture, as a list."""
    model.eval()
    with adjoin.no_grad():
        answers = [model(part.to(device)).argmax(1).tolist() for part in pictures.split(256)]
    model.train()
    return [answer for part in answers for answer in part]


def accuracy(answers, labels):
    """The share of right answers."""
    return sum(a == b for a, b in zip(answers, labels, strict=True)) / len(labels)


def draw(out, runs, pictures, labels):
    """Curves of all seeds, all their answers as a confusion matrix, and every digit that one of
    them misread."""
    names = [f"seed {run['seed']}" for run in runs]
    loss = {name: run["epoch_losses"] for name, run in zip(names, runs, strict=True)}
    right = {name: run["epoch_accuracies"] for name, run in zip(names, runs, strict=True)}
    held = {name: run["accuracy"] for name, run in zip(names, runs, strict=True)}
    plots.curves(
        os.path.join(out, "curves.png"),
        [
            plots.Panel("loss on shifted training pictures", "epoch", "cross entropy, smoothed", loss),
            plots.Panel("accuracy: lines training, dots held out", "epoch", "accuracy", right, held),
        ],
        "digits: a small convolutional network",
    )
    counts = [[0] * CLASSES for _ in range(CLASSES)]
    misread = {}  # picture -> the wrong answers it got
    for run in runs:
        for i, (truth, answer) in enumerate(zip(labels, run["answers"], strict=True)):
            counts[truth][answer] += 1
            if truth != answer:
                misread.setdefault(i, []).append(answer)
    of = f"{len(labels)} held-out digits, {len(runs)} networks"
    plots.confusion(os.path.join(out, "confusion.png"), counts, range(CLASSES), of)
    plots.images(
        os.path.join(out, "misread.png"),
        [pictures[i, 0].tolist() for i in sorted(misread)],
        [f"{labels[i]} read as {', '.join(map(str, misread[i]))}" for i in sorted(misread)],
        f"misread by one network or more: {len(misread)} of {of}",
    )


def write(out, model, runs, pictures, labels):
    """The first seed's weights, what was held out with its predictions, and the numbers of all
    runs."""
    weights = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    safetensors.save_file(weights, os.path.join(out, "digits.safetensors"))
    held = {
        "pictures": pictures,
        "labels": labels,
        "predictions": adjoin.tensor(runs[0]["answers"], dtype=adjoin.int64),
    }
    safetensors.save_file(held, os.path.join(out, "held_out.safetensors"))
    with open(os.path.join(out, "runs.json"), "w") as file:
        json.dump([{k: v for k, v in run.items() if k != "answers"} for run in runs], file, indent=1)
        file.write("\n")


def main(arguments=None):
    """Reads the command line, trains a network per seed, writes what came out; returns the mean
    accuracy."""
    parser = argparse.ArgumentParser(prog="python -m adjoin.demo.digits", description=__doc__)
    parser.add_argument("--backend", "--device", default="cpu", help="device to train on: cpu, reference, emulated, …")
    parser.add_argument("--seeds", type=int, default=5, help="networks to train (default 5)")
    parser.add_argument("--epochs", type=int, default=40, help="passes over the data (default 40)")
    parser.add_argument("--out", default="digits-run", help="folder for weights, pictures, numbers")
    parser.add_argument("--steps", type=int, help="stop each network after so many steps and only "
                        "write their losses to losses.json, to compare backends")  # fmt: skip
    parser.add_argument("--data", metavar="FILE", help="only write pictures and labels to FILE "
                        "(safetensors), for the same demo in other languages")  # fmt: skip
    options = parser.parse_args(arguments)
    if options.data:
        names = ("pictures", "labels", "held_pictures", "held_labels")
        tensors = (t.contiguous() for t in load_digits())
        safetensors.save_file(dict(zip(names, tensors, strict=True)), options.data)
        return None
    if options.seeds < 1 or options.epochs < 1 or (options.steps is not None and options.steps < 1):
        parser.error("--seeds, --epochs and --steps want numbers of at least 1")
    os.makedirs(options.out, exist_ok=True)
    device = adjoin.device(options.backend)
    pictures, labels, held, held_labels = load_digits()
    truth = held_labels.tolist()
    print(f"digits: {len(labels)} to learn from, {len(truth)} held out; on {device}")

    runs, first = [], None
    per_seed = options.steps or options.epochs * -(-len(labels) // BATCH)
    started = time.monotonic()
    with Bar(options.seeds * per_seed, "training") as bar:
        for seed in range(options.seeds):
            model, *curves = train(pictures, labels, seed=seed, epochs=options.epochs,
                                   device=device, steps=options.steps, bar=bar)  # fmt: skip
            names = ("losses", "epoch_losses", "epoch_accuracies")
            run = {"seed": seed, **dict(zip(names, curves, strict=True))}
            runs.append(run)
            if options.steps is None:
                run["answers"] = predict(model, held, device)
                run["accuracy"] = accuracy(run["answers"], truth)
            first = first or model
    print(f"digits: {len(runs)} networks in {time.monotonic() - started:.1f} s")
    if options.steps is not None:
        path = os.path.join(options.out, "losses.json")
        with open(path, "w") as file:
            json.dump({"backend": str(device), "losses": [run["losses"] for run in runs]}, file)
        print(f"digits: losses of {options.steps} steps in {path}")
        return None
    write(options.out, first, runs, held, held_labels)
    if plots.available():
        draw(options.out, runs, held, truth)
    else:
        print("digits: no pictures, for matplotlib is not installed; pip install matplotlib")
    for run in runs:
        print(f"seed {run['seed']}: {run['accuracy']:.4f}")
    mean = sum(run["accuracy"] for run in runs) / len(runs)
    print(f"digits: weights, pictures and numbers in {options.out}")
    print(f"held-out accuracy: {mean:.4f}")
    return mean


if __name__ == "__main__":
    main()
    sys.exit(0)
