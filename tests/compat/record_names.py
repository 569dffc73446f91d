"""tests/compat/record_names.py: writes the public names of PyTorch's modules into tests/programs/recorded_names.json; run with PyTorch."""

import importlib
import json
import pathlib
import types

import torch

MODULES = """
torch torch.Tensor torch.amp torch.autograd torch.autograd.forward_ad torch.autograd.functional torch.autograd.graph torch.backends
torch.backends.cpu torch.backends.cuda torch.backends.cudnn torch.backends.mkl torch.backends.mkldnn torch.backends.mps
torch.backends.openmp torch.compiler torch.cpu torch.cuda torch.cuda.amp torch.cuda.comm torch.cuda.nvtx torch.distributed
torch.distributions torch.distributions.constraints torch.distributions.kl torch.distributions.transforms torch.export torch.fft
torch.func torch.futures torch.fx torch.hub torch.jit torch.library torch.linalg torch.masked torch.multiprocessing torch.nested
torch.nn torch.nn.attention torch.nn.attention.flex_attention torch.nn.functional torch.nn.init torch.nn.parallel torch.nn.utils
torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.nn.utils.prune torch.nn.utils.rnn torch.nn.utils.stateless torch.onnx
torch.optim torch.optim.lr_scheduler torch.optim.swa_utils torch.overrides torch.package torch.profiler torch.quantization torch.random
torch.return_types torch.serialization torch.signal.windows torch.sparse torch.special torch.storage torch.testing torch.types
torch.utils torch.utils.benchmark torch.utils.checkpoint torch.utils.cpp_extension torch.utils.data torch.utils.data.distributed
torch.utils.dlpack torch.utils.hooks torch.utils.model_zoo torch.xpu
""".split()


def public(owner):
    """Names that are its own: no modules, nothing of Python's."""
    said = getattr(owner, "__all__", None)
    found = []
    for name in said or dir(owner):
        thing = getattr(owner, name, None)
        home = getattr(thing, "__module__", None) or "torch"
        own = isinstance(owner, type) or not callable(thing) or home.split(".")[0] in ("torch", "builtins")
        if not name.startswith("_") and not isinstance(thing, types.ModuleType) and own and home != "typing":
            found.append(name)
    return sorted(set(found))


def main():
    names = {}
    for path in MODULES:
        owner = torch.Tensor if path == "torch.Tensor" else importlib.import_module(path)
        names[path] = " ".join(public(owner))
    file = pathlib.Path(__file__).resolve().parents[1] / "programs/recorded_names.json"
    file.write_text(json.dumps({"version": str(torch.__version__).split("+")[0], "names": names}, indent=0) + "\n")
    print(sum(len(text.split()) for text in names.values()), "names")


if __name__ == "__main__":
    main()
