"""adjoin._names: other paths to modules: PyTorch's, and a program's own name for the package.

After ``sys.modules["torch"] = adjoin`` an ``import torch.nn`` finds adjoin.nn itself. Python alone would read its files a
second time under the other name, and no class of one copy is a class of the other.
"""

import contextlib
import importlib
import sys
import types
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

_PACKAGE = __package__


def _under(room, **files):
    return {f"{room}.{theirs}": f"{room}.{ours}" for ours, names in files.items() for theirs in names.split()}


PLACES = {  # where PyTorch has it: where it is
    "_C._functorch": "_functorch.levels",
    "autograd.variable": "autograd._variable",
    "optim.adamw": "optim.adam",
    "nn.modules.instance_norm": "nn.modules.instancenorm",
    "nn.modules.upsampling": "nn.modules.images",
    "nn.modules.pixelshuffle": "nn.modules.images",
    "nn.modules.fold": "nn.modules.images",
    "nn.parallel.data_parallel": "nn.parallel",
    "distributed.distributed_c10d": "distributed",
    "distributed.fsdp.api": "distributed.fsdp",
    "cuda.amp.common": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "cuda.amp.autocast_mode": "cuda.amp",
    **_under("distributed.tensor.parallel", _styles="style api", _loss="loss"),
    "distributed.tensor.device_mesh": "distributed.device_mesh",
    "distributed.algorithms._comm_hooks": "distributed.algorithms.ddp_comm_hooks",
    "distributed.algorithms._comm_hooks.default_hooks": "distributed.algorithms.ddp_comm_hooks.default_hooks",
    "distributed.launch": "distributed.run",
    "distributed.constants": "distributed",
    "nn.parallel.scatter_gather": "nn.parallel._spread",
    "sparse._triton_ops_meta": "_triton_tables",
    "sparse.semi_structured": "_semi_structured",
    "_library.infer_schema": "library",
    "_library.custom_ops": "library",
    **_under("utils.trainer.plugins", monitors="monitor loss accuracy time progress", files="saver"),
    **_under(
        "distributions",
        continuous="cauchy exponential gumbel laplace normal uniform",
        discrete="bernoulli categorical geometric one_hot_categorical poisson",
        gamma="beta chi2 dirichlet",
        matrices="lkj_cholesky wishart",
        joint="half_normal independent log_normal multivariate_normal transformed_distribution",
        mixture="mixture_same_family",
        counts="binomial multinomial negative_binomial",
        relaxed="relaxed_bernoulli relaxed_categorical",
        tails="half_cauchy inverse_gamma kumaraswamy pareto studentT weibull",
    ),
}


class _Both(types.ModuleType):
    """A module at the path of a function, which an import puts in the function's place: it can still be called."""

    def __init__(self, real, function):
        super().__init__(real.__name__, real.__doc__)
        self.__dict__.update(_real=real, _function=function)

    def __getattr__(self, name):
        return getattr(self._real, name)

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)


class _Alias:
    """Loads a module by giving the one that is there already."""

    def __init__(self, real):
        self.real = real

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        real = importlib.import_module(self.real)
        parent, _, child = module.__name__.rpartition(".")
        there = vars(sys.modules[parent]).get(child)
        is_function = callable(there) and not isinstance(there, types.ModuleType)
        sys.modules[module.__name__] = _Both(real, there) if is_function else real


def is_ours(name):
    """Is this the name of a module of the package, whatever the package is called?"""
    top = (name or "").partition(".")[0]
    return top == _PACKAGE or bool(top) and sys.modules.get(top) is sys.modules.get(_PACKAGE)


def _is_public(rest):
    return not rest.startswith(("_", "torch.", "version")) and rest != "torch"


class _Named(SourceFileLoader):
    """Runs a module of the package under the name that programs use for it: what it defines has that ``__module__``."""

    def exec_module(self, module):
        module.__name__ = sys.modules[_PACKAGE].__name__ + self.name.removeprefix(_PACKAGE)
        sys.modules[module.__name__] = module
        try:
            super().exec_module(module)
        except BaseException:
            sys.modules.pop(module.__name__, None)
            raise

    def get_code(self, fullname):
        return super().get_code(self.name)


def rename():
    """Gives modules that are loaded already, and what they define, the name of the package."""
    for name, module in list(sys.modules.items()):
        top, _, rest = name.partition(".")
        if top != _PACKAGE or not rest or not _is_public(rest) or not isinstance(module, types.ModuleType):
            continue
        called = f"{sys.modules[_PACKAGE].__name__}.{rest}"
        for value in vars(module).values():
            if isinstance(value, (type, types.FunctionType)) and value.__module__ == name:
                with contextlib.suppress(TypeError):  # a type of C
                    value.__module__ = called
        module.__name__ = called
        sys.modules[called] = module


class Finder:
    """Answers for names under whatever name the package has in sys.modules."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """The module at another path, or None where the path is as good as any."""
        top, _, rest = name.partition(".")
        if not rest or sys.modules.get(top) is not sys.modules.get(_PACKAGE):
            return None
        place = PLACES.get(rest, rest)
        if top == _PACKAGE and place == rest:
            if sys.modules[top].__name__ == _PACKAGE or not _is_public(rest):
                return None
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and type(spec.loader) is SourceFileLoader:
                spec.loader = _Named(name, spec.loader.path)
            return spec
        real = f"{_PACKAGE}.{place}"
        try:
            importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name != real:
                raise
            return None
        sys.modules.pop(name, None)  # _Named has put it there: the import that asks would run what it finds once more
        return ModuleSpec(name, _Alias(real))


sys.meta_path.insert(0, Finder)
