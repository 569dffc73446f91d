"""adjoin.nn.utils.weight_norm: a weight as length times direction (Salimans and Kingma, 2016), by a
hook before each forward; parametrizations.weight_norm is the newer form."""

import warnings

from ..parameter import Parameter, is_lazy

__all__ = ["remove_weight_norm", "weight_norm"]


def norm_except(v, dim):
    """The length of v over all dimensions but ``dim``; over all if that is None or -1."""
    if dim is None or dim == -1:
        return v.norm()
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return (v * v).sum(others, keepdim=True).sqrt() if others else v.abs()


def weight_of(v, g, dim):
    """The vector of direction v and length g."""
    return v * (g / norm_except(v, dim))


class WeightNorm:
    """The hook; picklable."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight of the module's two parameters."""
        return weight_of(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def __call__(self, module, inputs):
        object.__setattr__(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Replaces a parameter by ``name_g``, its length along ``dim``, and ``name_v``, its
    direction."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    if is_lazy(weight):
        raise ValueError(
            "weight_norm: modules cannot have uninitialized parameters. Call the module with one input first"
        )
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except(weight, hook.dim).detach()))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    object.__setattr__(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module, name="weight"):
    """Makes the weight one parameter again."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module).detach()
            delattr(module, name)
            del module._parameters[name + "_g"], module._parameters[name + "_v"]
            setattr(module, name, Parameter(weight))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
