"""frontends/docs/gallery.py: examples with pictures; each is trained while the site is made."""

import inspect
import pathlib
import sys
import textwrap

import adjoin
import matplotlib
import numpy as np
from adjoin import nn, optim
from adjoin.nn import functional as F

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/programs"))
import runner


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def bare(axes):
    axes.set_xticks([])
    axes.set_yticks([])


def tiles(pictures, path, columns, titles=None):
    """Grey pictures side by side."""
    rows = -(-len(pictures) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(0.8 * columns, (1.0 if titles else 0.8) * rows), squeeze=False)
    for k, axes in enumerate(grid.flat):
        bare(axes)
        if k < len(pictures):
            axes.imshow(pictures[k], cmap="gray_r")
            if titles:
                axes.set_title(titles[k], fontsize=9)
    save(figure, path)


def two_arms(count):
    """Points on two arms of a spiral."""
    t = adjoin.rand(count) * 3 * np.pi
    arm = adjoin.randint(0, 2, (count,))
    angle = t + arm * np.pi
    points = adjoin.stack([t * angle.cos(), t * angle.sin()], dim=1) / 10
    return points + 0.02 * adjoin.randn(count, 2), arm


def spiral():
    adjoin.manual_seed(0)
    points, arm = two_arms(600)
    net = nn.Sequential(
        nn.Linear(2, 64), nn.Tanh(),
        nn.Linear(64, 64), nn.Tanh(),
        nn.Linear(64, 2),
    )  # fmt: skip
    optimizer = optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(600):
        loss = F.cross_entropy(net(points), arm)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net, points, arm


def draw_spiral(path):
    net, points, arm = spiral()
    side = adjoin.linspace(-1.1, 1.1, 200)
    grid = adjoin.stack(adjoin.meshgrid(side, side, indexing="xy"), dim=-1).reshape(-1, 2)
    with adjoin.no_grad():
        share = net(grid).softmax(1)[:, 1].reshape(200, 200).numpy()
        right = (net(points).argmax(1) == arm).float().mean().item()
    figure, axes = plt.subplots(figsize=(4.4, 4.4))
    axes.imshow(share, extent=(-1.1, 1.1, -1.1, 1.1), origin="lower", cmap="RdBu", alpha=0.6)
    axes.scatter(*points.T.numpy(), c=arm.numpy(), cmap="RdBu", s=8, edgecolors="k", linewidths=0.2)
    bare(axes)
    save(figure, path)
    return f"After 600 steps the network puts {right:.1%} of its 600 points on the right arm."


def descend(make, steps=400):
    """The path of an optimizer in Rosenbrock's valley."""
    place = adjoin.tensor([-1.5, 2.0], requires_grad=True)
    optimizer, path = make([place]), []
    for _ in range(steps):
        path.append(place.detach().clone())

        def closure():
            optimizer.zero_grad()
            x, y = place.unbind()
            loss = (1 - x) ** 2 + 100 * (y - x * x) ** 2
            loss.backward()
            return loss

        optimizer.step(closure)
    return adjoin.stack(path)


def draw_descent(path):
    ways = {
        "SGD, momentum": lambda p: optim.SGD(p, lr=3e-4, momentum=0.95),
        "Adam": lambda p: optim.Adam(p, lr=0.1),
        "LBFGS": lambda p: optim.LBFGS(p, lr=0.5, max_iter=1),
    }
    figure, axes = plt.subplots(figsize=(5.2, 4))
    x, y = np.meshgrid(np.linspace(-2, 2, 200), np.linspace(-1, 3, 200))
    axes.contourf(x, y, np.log10((1 - x) ** 2 + 100 * (y - x * x) ** 2 + 1e-3), 20, cmap="Greys", alpha=0.6)
    ends = []
    for name, make in ways.items():
        points = descend(make).numpy()
        axes.plot(*points.T, ".-", markersize=2, linewidth=1, label=name)
        ends.append(f"{name} ends {np.hypot(*(points[-1] - 1)):.3f} away")
    axes.plot(1, 1, "k*", markersize=10)
    axes.set_xlim(-2, 2)
    axes.set_ylim(-1, 3)
    axes.legend()
    save(figure, path)
    return f"The star is the minimum. After 400 steps {', '.join(ends)}."


def draw_digits(path):
    from adjoin.demo import digits

    train_x, train_y, test_x, test_y = digits.load_digits()
    adjoin.manual_seed(0)
    net = digits.DigitNet()
    optimizer = optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(12):
        for rows in adjoin.randperm(len(train_x)).split(digits.BATCH):
            loss = F.cross_entropy(net(train_x[rows]), train_y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    net.eval()
    with adjoin.no_grad():
        read = net(test_x).argmax(1)
    right = (read == test_y).float().mean().item()
    tiles(test_x[:20, 0].numpy(), path, 10, [str(int(d)) for d in read[:20]])
    return f"Twenty digits that were held out, each under what the network read. It reads {right:.1%} of all {len(test_x)} rightly."


def draw_vae(path):
    program = runner.load("vae")
    model = program.build()
    losses = program.train(model, 1500)
    adjoin.manual_seed(3)
    with adjoin.no_grad():
        drawn = model.decode(adjoin.randn(20, 8)).reshape(20, 12, 12).numpy()
    tiles(drawn, path, 10)
    return f"Twenty pictures that it drew after 1,500 steps; the loss of a picture went from {losses[0]:.0f} to {losses[-1]:.1f}."


def draw_gan(path):
    program = runner.load("gan")
    nets = program.build()
    program.train(nets, 1200)
    adjoin.manual_seed(5)
    with adjoin.no_grad():
        fake = nets["G"](adjoin.randn(10, 8, 1, 1))[:, 0].numpy()
    real = program.pictures(10)[:, 0].numpy()
    tiles([*real, *fake], path, 10)
    return "Above ten pictures that it was shown, below ten that it made after 1,200 steps."


def draw_programs(path):
    figure, grid = plt.subplots(4, 2, figsize=(6.4, 7.6))
    apart = 0.0
    for axes, name in zip(grid.flat, runner.NAMES):
        wanted = runner.recorded()[name]
        got = runner.losses(name, adjoin, len(wanted))
        apart = max(apart, *(abs(a - b) for a, b in zip(got, wanted, strict=True)))
        axes.plot(wanted, linewidth=4, color="0.8", label="PyTorch, recorded")
        axes.plot(got, linewidth=1, color="C0", label="Adjoin, now")
        axes.set_title(name, fontsize=9)
        axes.tick_params(labelsize=7)
    last = grid.flat[-1]
    last.axis("off")
    last.legend(*axes.get_legend_handles_labels(), loc="center", fontsize=9)
    save(figure, path)
    return f"Losses of 100 steps. The greatest distance to PyTorch's is {apart:.1e}."


# name, title, what it is, how to run it or its source, the picture
ENTRIES = (
    ("digits", "Reading digits", "A small convolutional network learns scikit-learn's handwritten digits.",
     "./run demo", draw_digits),
    ("spiral", "Two arms of a spiral", "A network of three layers, and what it thinks of every point of the plane.",
     (two_arms, spiral), draw_spiral),
    ("vae", "Drawing blobs", "A variational autoencoder learns pictures of blobs.", "python tests/programs/vae.py", draw_vae),
    ("gan", "Two networks against each other", "A DCGAN: one network makes pictures, the other one tells them from real ones.",
     "python tests/programs/gan.py", draw_gan),
    ("descent", "Ways down a valley", "Three optimizers in Rosenbrock's valley.", (descend,), draw_descent),
    ("programs", "Seven programs beside PyTorch", "Programs as people write them for PyTorch, with the same weights and the same "
     "noise.", "./run test tests/python/toplevel/training_programs_test.py", draw_programs),
)  # fmt: skip


def write(out):
    """out/gallery.md and its pictures."""
    pictures = out / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    text = ["# Gallery", "", "Every picture was made by a run while this site was built.", ""]
    for name, title, what, how, draw in ENTRIES:
        text += [f"## {title}", what, "", f"![{title}](pictures/{name}.png)", "", draw(pictures / f"{name}.png"), ""]
        if isinstance(how, str):
            text += [f"    {how}", ""]
        else:
            code = "\n\n".join(textwrap.dedent(inspect.getsource(f)) for f in how)
            text += ["```python", code.rstrip(), "```", ""]
    (out / "gallery.md").write_text("\n".join(text))
