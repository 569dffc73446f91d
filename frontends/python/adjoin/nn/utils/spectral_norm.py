"""adjoin.nn.utils.spectral_norm: a weight over its largest singular value (Miyato et al., 2018), by
a hook before each forward; parametrizations.spectral_norm is the newer form."""

import adjoin

from .. import functional as F
from ..parameter import Parameter, is_lazy

__all__ = ["remove_spectral_norm", "spectral_norm"]


def as_matrix(weight, dim):
    """The weight with dimension ``dim`` first and the others as one."""
    if dim != 0:
        weight = weight.permute(dim, *[d for d in range(weight.dim()) if d != dim])
    return weight.reshape(weight.size(0), -1)


def default_dim(module):
    """Transposed convolutions have their outputs in dimension 1."""
    from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

    return int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


def power_iterations(matrix, u, v, count, eps, first_u=False):
    """Brings u and v nearer to the first singular vectors, in place and unrecorded; the one that
    comes first is that of the saved form."""
    steps = [(v, matrix.mH, u), (u, matrix, v)]
    with adjoin.no_grad():
        for _ in range(count):
            for to, by, other in reversed(steps) if first_u else steps:
                to.copy_(F.normalize(by @ other, dim=0, eps=eps))


class SpectralNorm:
    """The hook; picklable."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute_weight(self, module, do_power_iteration):
        """The module's weight over its largest singular value."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_iterations(matrix, u, v, self.n_power_iterations, self.eps)
            u, v = u.clone(), v.clone()  # what is recorded must not change at the next call
        return weight / u.vdot(matrix @ v)

    def __call__(self, module, inputs):
        weight = self.compute_weight(module, module.training)
        object.__setattr__(module, self.name, weight)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a parameter by its largest singular value, found by power iterations that go on while
    the module trains."""
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    hook = SpectralNorm(name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    if is_lazy(weight):
        raise ValueError(
            "spectral_norm: modules cannot have uninitialized parameters. Call the module with one input first"
        )
    with adjoin.no_grad():
        matrix = as_matrix(weight, hook.dim)
        u, v = (
            F.normalize(adjoin.empty_like(matrix[0] if i else matrix[:, 0]).normal_(), dim=0,
                        eps=eps)
            for i in range(2)
        )  # fmt: skip
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    object.__setattr__(module, name, weight.detach())
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(_Version(hook))
    module._register_load_state_dict_pre_hook(_FromFirstLayout(hook))
    return module


class _Version:
    """Notes in a state dict's metadata which layout it has."""

    def __init__(self, hook):
        self.hook = hook

    def __call__(self, module, state_dict, prefix, local_metadata):
        notes = local_metadata.setdefault("spectral_norm", {})
        notes[self.hook.name + ".version"] = self.hook._version


class _FromFirstLayout:
    """Takes state dicts of the first layout, which had the divided weight and no second vector: the vector follows from the weight."""

    def __init__(self, hook):
        self.hook = hook

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, errors):
        name = self.hook.name
        key = prefix + name
        if (local_metadata.get("spectral_norm", {}).get(name + ".version") or 0) >= 1:
            return
        if key not in state_dict and all(key + part in state_dict for part in ("_orig", "_u", "_v")):
            return  # today's layout, without its note
        missing = [key + part for part in ("_orig", "", "_u") if key + part not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with adjoin.no_grad():
            original, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            largest = (original / state_dict.pop(key)).mean()
            matrix = as_matrix(original, self.hook.dim)
            v = adjoin.linalg.pinv(matrix) @ u
            state_dict[key + "_v"] = v * (largest / u.dot(matrix @ v))


def remove_spectral_norm(module, name="weight"):
    """Makes the divided weight an ordinary parameter."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            with adjoin.no_grad():
                weight = hook.compute_weight(module, False)
            delattr(module, name)
            del module._buffers[name + "_u"], module._buffers[name + "_v"]
            del module._parameters[name + "_orig"]
            module.register_parameter(name, Parameter(weight.detach()))
            del module._forward_pre_hooks[key]
            for hooks, kind in (
                (module._state_dict_hooks, _Version),
                (module._load_state_dict_pre_hooks, _FromFirstLayout),
            ):
                for key, other in list(hooks.items()):
                    other = getattr(other, "hook", None) if kind is _FromFirstLayout else other
                    if isinstance(other, kind) and other.hook is hook:
                        del hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
