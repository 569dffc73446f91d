"""frontends/docs/examples.py: the page of examples: each program of examples/, its text, and the curves of a run."""

import ast
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent / "examples"
# In the order of the page: a title, and the steps of a short run that shows something already.
ENTRIES = {
    "shapes": ("Pictures: a convolutional network", 4),
    "reversal": ("Sequences: a transformer", 200),
    "communities": ("Graphs: a sparse matrix of neighbours", 100),
    "cartpole": ("Acting: policy gradients", 50),
    "flow": ("Densities: a normalizing flow", 150),
    "diffusion": ("Drawing: diffusion", 600),
    "oscillator": ("Equations: a network that solves one", 1200),
    "maml": ("Gradients of gradients: MAML", 400),
    "wgan_gp": ("Gradients of gradients: a Wasserstein GAN", 300),
    "unrolled_gan": ("Gradients of gradients: an unrolled GAN", 150),
}
RUN = """
import json, runpy, sys
print(json.dumps(runpy.run_path(sys.argv[1])["run"](*map(int, sys.argv[2:]))))
"""


def curves(name, *steps):
    """{what: its numbers} of a run, in a process for which `import torch` is Adjoin."""
    import json

    from adjoin.torch import environment

    command = [sys.executable, "-c", RUN, str(HERE / f"{name}.py"), *map(str, steps)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"examples: {name}.py: {done.stderr}")
    return json.loads(done.stdout)


def drawn(found, path):
    """The curves side by side, with their means over a fiftieth where they tremble."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    figure, grid = plt.subplots(1, len(found), figsize=(4 * len(found), 2.6), squeeze=False)
    for axes, (what, values) in zip(grid.flat, found.items()):
        window = max(1, len(values) // 50)
        axes.plot(values, linewidth=0.6, color="0.75" if window > 1 else "C0")
        if window > 1:
            axes.plot(
                np.arange(window - 1, len(values)), np.convolve(values, np.ones(window) / window, "valid"), color="C0"
            )
        if min(values) > 0 and max(values) > 100 * min(values):
            axes.set_yscale("log")
        axes.set_title(what, fontsize=8)
        axes.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def write(out, short=False):
    """out/examples.md and its pictures."""
    pictures = out / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    text = ["# Examples", "", "Ten programs written for PyTorch, run by `adjoin run`. The curves were drawn while this site was built; the "
            "texts are in `frontends/docs/examples`.", ""]  # fmt: skip
    for name, (title, steps) in ENTRIES.items():
        source = (HERE / f"{name}.py").read_text()
        doc = ast.get_docstring(ast.parse(source))
        drawn(curves(name, *[steps] * short), pictures / f"example-{name}.png")
        text += [f"## {title}", doc, "", f"![{title}](pictures/example-{name}.png)", ""]
        text += [f"    adjoin run frontends/docs/examples/{name}.py", "", "```python"]
        text += [source.split('"""\n', 1)[1].strip(), "```", ""]
    (out / "examples.md").write_text("\n".join(text))
