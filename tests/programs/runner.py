"""tests/programs/runner.py: runs a program of this folder with Adjoin, or with PyTorch by other imports; from weights and
noise that NumPy draws, so that both take the same path."""

import json
import pathlib
import re
import types

import numpy as np

HERE = pathlib.Path(__file__).parent
NAMES = ("gpt", "resnet", "lstm", "vae", "vit", "gan", "dqn")


def recorded():
    """{program: PyTorch's losses}, as record.py wrote them."""
    return json.loads((HERE / "recorded.json").read_text())


def load(name, library="adjoin"):
    """The program as a module; with library="torch" its imports say torch instead of adjoin."""
    text = (HERE / f"{name}.py").read_text()
    if library == "torch":
        text = text.replace("import adjoin as torch", "import torch")
        text = re.sub(r"^(import|from) adjoin", r"\1 torch", text, flags=re.M)
    module = types.ModuleType(f"{library}_{name}")
    exec(compile(text, str(HERE / f"{name}.py"), "exec"), module.__dict__)
    return module


def fill(library, model):
    """Gives all parameters values that depend on nothing but their names."""
    with library.no_grad():
        for name, parameter in model.named_parameters():
            shape = tuple(parameter.shape)
            draw = np.random.RandomState(sum(map(ord, name)) % 2**31)
            scale = min(0.1, (2.0 / np.prod(shape[1:])) ** 0.5)
            centre = 1.0 if len(shape) == 1 and name.endswith("weight") else 0.0  # a norm's
            values = (centre + scale * draw.standard_normal(shape)).astype(np.float32)
            parameter.copy_(library.from_numpy(values))


def losses(name, library, steps=100):
    """Builds, fills and trains; the library's normal noise comes from NumPy meanwhile."""
    module = load(name, library.__name__)
    model = module.build()
    fill(library, model)
    draw = np.random.RandomState(11)
    kept = library.randn, library.randn_like

    def randn(*size, device=None, **_):
        size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return library.from_numpy(draw.standard_normal(tuple(size)).astype(np.float32)).to(device or "cpu")

    library.randn, library.randn_like = randn, lambda like, **_: randn(like.shape)
    try:
        return module.train(model, steps)
    finally:
        library.randn, library.randn_like = kept
