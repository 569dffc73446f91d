"""adjoin.torch: ``import torch`` is Adjoin: in this process, and in the Python processes that it starts.

``adjoin run train.py`` and ``python -m adjoin.torch train.py`` run a program so; ``adjoin.torch.install()`` does it for the
process that calls it. Without them ``import torch`` stays what it is.

A folder with a module ``torch`` and what packaging tools read of one stands first on the path of modules. So ``find_spec``
and ``importlib.metadata`` tell what is there, and processes that are started later find it by themselves.
"""

import os
import pathlib
import site
import sys

import adjoin

from .. import _names, version
from ..torch_version import TorchVersion
from . import _source

__all__ = ["environment", "install"]

PATH = pathlib.Path(__file__).resolve().parent / "path"
VERSION = TorchVersion(f"{version.pytorch}+adjoin.{version.__version__}")


def environment(given=None, old=False):
    """The variables of a process whose ``import torch`` is Adjoin: ``given`` (os.environ) with another PYTHONPATH; ``old``: with the
    manners of PyTorch 0.3."""
    made = dict(os.environ if given is None else given)
    if old:
        made["ADJOIN_OLD"] = "1"
    for early, hides in (("NO_CUDA", "CUDA_VISIBLE_DEVICES"), ("NO_ROCM", "HIP_VISIBLE_DEVICES")):
        if made.get(early, "0") not in ("", "0"):
            made[hides] = ""  # their drivers show no card then
    package = str(PATH.parents[2])
    found_anyway = {os.path.realpath(p) for p in (*site.getsitepackages(), site.getusersitepackages())}
    ahead = [str(PATH)] + ([package] if os.path.realpath(package) not in found_anyway else [])
    rest = [p for p in made.get("PYTHONPATH", "").split(os.pathsep) if p and p not in ahead]
    made["PYTHONPATH"] = os.pathsep.join(ahead + rest)
    return made


def __getattr__(name):
    """``torch.torch`` is PyTorch itself: its names stand here, too."""
    return getattr(adjoin, name)


def __dir__():
    return sorted({*globals(), *dir(adjoin)})


def install(old=None):
    """From now on ``import torch`` and every ``import torch.x`` reach Adjoin. Raises ImportError where PyTorch is loaded.

    ``old`` (or the variable ADJOIN_OLD) brings the manners of PyTorch 0.3, in this process: ``loss.data[0]`` is a number, factors
    stand in front of tensors, dropout and interpolation have the defaults of then.
    """
    there = sys.modules.get("torch")
    if os.environ.get("ADJOIN_OLD") == "1" if old is None else old:
        from . import _old

        _old.install()
    if there is adjoin:
        return
    if there is not None and not str(getattr(there, "__file__", "")).startswith(str(PATH)):
        raise ImportError(
            f"adjoin.torch.install(): another torch is loaded already, {getattr(there, '__file__', there)!r}; "
            "call install() before anything imports torch, or run the program with `adjoin run`"
        )
    sys.modules["torch"] = adjoin
    # Programs look at both.
    adjoin.__name__, adjoin.__version__ = "torch", VERSION
    version.__version__ = VERSION
    _source.install()
    adjoin._C.name_types("torch")
    adjoin._C.__path__ = []  # `import torch._C._functorch` asks the finder of _names
    for one in (adjoin.OutOfMemoryError, adjoin.OutOfRangeError, adjoin.DeviceMismatchError):
        one.__module__ = "torch"
    _names.rename()
    if str(PATH) not in sys.path:
        sys.path.insert(0, str(PATH))
    os.environ["PYTHONPATH"] = environment()["PYTHONPATH"]
    if "ADJOIN_REPORT" in os.environ:
        from . import _watch

        _watch.start()
