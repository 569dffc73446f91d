"""adjoin._names: other paths to modules: PyTorch's, and a program's own name for the package.

After ``sys.modules["torch"] = adjoin`` an ``import torch.nn`` finds adjoin.nn itself. Python alone would read its files a
second time under the other name, and no class of one copy is a class of the other.
"""

import importlib
import sys
import types
from importlib.machinery import ModuleSpec

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
            return None
        real = f"{_PACKAGE}.{place}"
        try:
            importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name != real:
                raise
            return None
        return ModuleSpec(name, _Alias(real))


sys.meta_path.insert(0, Finder)
