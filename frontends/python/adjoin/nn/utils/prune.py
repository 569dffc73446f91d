"""adjoin.nn.utils.prune: parameters times a mask: ``weight_orig`` is trained, ``weight`` is what the layer uses."""

import adjoin


class _Masked:
    """Sets the attribute before each call of the module."""

    def __init__(self, name):
        self._tensor_name = name

    def __call__(self, module, inputs):
        original, mask = getattr(module, self._tensor_name + "_orig"), getattr(module, self._tensor_name + "_mask")
        setattr(module, self._tensor_name, mask.to(original.dtype) * original)


def _hook_of(module, name):
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, _Masked) and hook._tensor_name == name:
            return key, hook
    return None


def custom_from_mask(module, name, mask):
    """Prunes what is zero in a mask of the parameter's shape, beside what was pruned before."""
    if _hook_of(module, name) is None:
        original = getattr(module, name)
        mask = mask.to(original.dtype)
        del module._parameters[name]
        module.register_parameter(name + "_orig", original)
        module.register_buffer(name + "_mask", mask)
        module.register_forward_pre_hook(_Masked(name))
    else:
        before = getattr(module, name + "_mask")
        before.copy_(before * mask.to(before.dtype))
    _hook_of(module, name)[1](module, ())
    return module


def identity(module, name):
    """Prunes nothing yet."""
    return custom_from_mask(module, name, adjoin.ones_like(_original(module, name)))


def is_pruned(module):
    """Whether a parameter of the module or of one inside is pruned."""
    return any(isinstance(h, _Masked) for m in module.modules() for h in m._forward_pre_hooks.values())


def remove(module, name):
    """Makes what is pruned a parameter of zeros that is trained like any other."""
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    del module._forward_pre_hooks[found[0]]
    original, mask = module._parameters.pop(name + "_orig"), module._buffers.pop(name + "_mask")
    original.data = mask * original.data
    module.__dict__.pop(name, None)
    module.register_parameter(name, original)
    return module


def _original(module, name):
    return getattr(module, name + "_orig" if _hook_of(module, name) else name).detach()


def _count(amount, size):
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or amount < 0:
        raise ValueError(f"prune: amount={amount!r} is neither a fraction of 0 to 1 nor a number of elements")
    if isinstance(amount, int):
        if amount > size:
            raise ValueError(f"prune: amount={amount} is more than the {size} that are left")
        return amount
    if amount > 1:
        raise ValueError(f"prune: amount={amount} is more than 1")
    return round(amount * size)


def _mask(module, name):
    return (
        getattr(module, name + "_mask") if _hook_of(module, name) else adjoin.ones_like(_original(module, name))
    ).clone()


def _least(scores, mask, amount):
    """The mask without the least scores of what it has."""
    flat, kept = mask.reshape(-1), mask.reshape(-1).nonzero().reshape(-1)
    gone = _count(amount, len(kept))
    if gone:
        flat[kept[scores.reshape(-1)[kept].topk(gone, largest=False).indices]] = 0
    return flat.reshape(mask.shape)


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the elements of least magnitude: a fraction of those left, or a number of them."""
    scores = _original(module, name).abs() if importance_scores is None else importance_scores
    return custom_from_mask(module, name, _least(scores, _mask(module, name), amount))


def random_unstructured(module, name, amount):
    """Prunes elements at random."""
    original = _original(module, name)
    return custom_from_mask(module, name, _least(adjoin.rand(original.shape), _mask(module, name), amount))


def _slices(scores, mask, amount, dim):
    """The mask without the slices of a dimension that have the least scores."""
    others = [d for d in range(mask.dim()) if d != dim % mask.dim()]
    left = (mask.sum(others) > 0).to(mask.dtype)
    shape = [1] * mask.dim()
    shape[dim] = -1
    return mask * _least(scores, left, amount).reshape(shape)


def _channels(module, name, amount, dim, scores):
    return custom_from_mask(module, name, _slices(scores, _mask(module, name), amount, dim))


def _norms(t, n, dim):
    return t.norm(n, dim=[d for d in range(t.dim()) if d != dim % t.dim()])


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the slices of a dimension whose n-norm is least."""
    original = _original(module, name) if importance_scores is None else importance_scores
    return _channels(module, name, amount, dim, _norms(original, n, dim))


def random_structured(module, name, amount, dim):
    """Prunes slices of a dimension at random."""
    return _channels(module, name, amount, dim, adjoin.rand(_original(module, name).shape[dim]))


class BasePruningMethod:
    """A rule of one's own: a subclass says what stays in ``compute_mask(t, default_mask)`` and is applied by
    ``Mine.apply(module, name, *arguments of its making)``."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The mask of a tensor, of which default_mask is left."""
        raise NotImplementedError(f"{type(self).__name__} must define compute_mask")

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes the parameter ``name``."""
        method, scores = (
            cls(*args, **kwargs),
            _original(module, name) if importance_scores is None else importance_scores,
        )
        custom_from_mask(module, name, method.compute_mask(scores, _mask(module, name)))
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """The tensor times the mask."""
        mask = adjoin.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, mask)


class _ByScores(BasePruningMethod):
    def __init__(self, amount):
        self.amount = amount

    def compute_mask(self, t, default_mask):
        """See the base."""
        return _least(self._scores(t), default_mask.clone(), self.amount)


class L1Unstructured(_ByScores):
    """The method l1_unstructured, for global_unstructured."""

    @staticmethod
    def _scores(tensor):
        return tensor.abs()


class RandomUnstructured(_ByScores):
    """The method random_unstructured, for global_unstructured."""

    @staticmethod
    def _scores(tensor):
        return adjoin.rand(tensor.shape)


class Identity(BasePruningMethod):
    """Prunes nothing."""

    def compute_mask(self, t, default_mask):
        """What is left."""
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes what is zero in a mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """See the base."""
        return default_mask * self.mask.to(default_mask.dtype)


class LnStructured(BasePruningMethod):
    """Slices of a dimension whose n-norm is least."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, n, dim=-1):
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t, default_mask):
        """See the base."""
        return _slices(_norms(t, self.n, self.dim), default_mask, self.amount, self.dim)


class RandomStructured(BasePruningMethod):
    """Slices of a dimension at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        self.amount, self.dim = amount, dim

    def compute_mask(self, t, default_mask):
        """See the base."""
        return _slices(adjoin.rand(t.shape[self.dim]), default_mask, self.amount, self.dim)


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes elements of several parameters, (module, name) each, as if they were one tensor."""
    parameters, given = list(parameters), importance_scores or {}
    scores = [given.get(p, None) for p in parameters]
    own = issubclass(pruning_method, _ByScores)
    rate = pruning_method._scores if own else lambda t: t
    scores = [rate(_original(*p)) if s is None else s for p, s in zip(parameters, scores, strict=True)]
    masks = [_mask(*p) for p in parameters]
    flat = [adjoin.cat([t.reshape(-1) for t in tensors]) for tensors in (scores, masks)]
    whole = _least(*flat, **kwargs) if own else pruning_method(**kwargs).compute_mask(*flat)
    parts = whole.split([m.numel() for m in masks])
    for parameter, part, mask in zip(parameters, parts, masks, strict=True):
        custom_from_mask(*parameter, part.reshape(mask.shape))
