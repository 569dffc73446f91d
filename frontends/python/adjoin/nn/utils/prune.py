"""adjoin.nn.utils.prune: parameters times a mask: ``weight_orig`` is trained, ``weight`` is what the layer uses.

A method of pruning is an object that says which elements stay. It is the module's hook, too: before each call it sets the
attribute anew. A parameter that is pruned again has a container of its methods as hook.
"""

import math

import adjoin


def _validate_pruning_amount_init(amount):
    """Raises unless ``amount`` is a fraction of 0 to 1 or a number of elements."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"prune: amount={amount!r} is neither a fraction of 0 to 1 nor a number of elements")
    if amount < 0 or (isinstance(amount, float) and not amount <= 1):
        raise ValueError(f"prune: amount={amount!r} is neither a fraction of 0 to 1 nor a number of elements")


def _validate_pruning_amount(amount, tensor_size):
    """Raises where a number of elements is more than there are."""
    if isinstance(amount, int) and amount > tensor_size:
        raise ValueError(f"prune: amount={amount} is more than the {tensor_size} that are left")


def _compute_nparams_toprune(amount, tensor_size):
    """The number of elements that an amount means."""
    return amount if isinstance(amount, int) else round(tensor_size * amount)


def _validate_structured_pruning(t):
    if t.dim() < 2:
        raise ValueError(
            f"prune: slices of a tensor of shape {list(t.shape)} are its elements; take an unstructured method"
        )


def _validate_pruning_dim(t, dim):
    if dim >= t.dim():
        raise IndexError(f"prune: dim={dim} of a tensor with {t.dim()} dimensions")


def _compute_norm(t, n, dim):
    """The n-norm of each slice of a dimension."""
    return t.norm(n, dim=[d for d in range(t.dim()) if d != dim % t.dim()])


def _hook_of(module, name):
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


class BasePruningMethod:
    """A rule of one's own: a subclass says what stays in ``compute_mask(t, default_mask)`` and is applied by
    ``Mine.apply(module, name, *arguments of its making)``.

    ``PRUNING_TYPE`` says what the rule chooses from where something was pruned before: "unstructured": elements that are left;
    "structured": slices of ``dim`` that are left; "global": all.
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name = None

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t, default_mask):
        """The mask of a tensor, of which default_mask is left."""
        raise NotImplementedError(f"{type(self).__name__} must define compute_mask")

    def apply_mask(self, module):
        """The trained parameter times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"prune: module {module} has to be pruned first")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes the parameter ``name`` by the scores, or by its own values."""
        method, before = cls(*args, **kwargs), _hook_of(module, name)
        method._tensor_name = name
        hook = method
        if before is not None:
            hook = PruningContainer(before[1])
            hook.add_pruning_method(method)
        values = getattr(module, name)
        if importance_scores is None:
            importance_scores = values
        elif importance_scores.shape != values.shape:
            raise AssertionError(
                f"prune: importance_scores have shape {list(importance_scores.shape)}, {name} has {list(values.shape)}"
            )
        left = adjoin.ones_like(values) if before is None else getattr(module, name + "_mask")
        with adjoin.no_grad():
            mask = hook.compute_mask(importance_scores.detach(), left.detach())
        if before is None:
            del module._parameters[name]
            module.register_parameter(name + "_orig", values)
        else:
            del module._forward_pre_hooks[before[0]]
        module.register_buffer(name + "_mask", mask.detach())
        hook(module, ())
        module.register_forward_pre_hook(hook)
        return hook

    def prune(self, t, default_mask=None, importance_scores=None):
        """The tensor times the mask."""
        mask = adjoin.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, mask)

    def remove(self, module):
        """Makes what is pruned a parameter of zeros that is trained like any other; the hook stays."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"prune: module {module} has to be pruned before pruning can be removed")
        pruned = self.apply_mask(module).detach()
        original = module._parameters.pop(name + "_orig")
        del module._buffers[name + "_mask"]
        original.data = pruned
        module.__dict__.pop(name, None)
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """The methods that pruned one parameter, in their order; a new mask is the last one's."""

    def __init__(self, *args):
        self._pruning_methods = ()
        for method in args:
            if isinstance(method, PruningContainer):
                self._pruning_methods, self._tensor_name = tuple(method), method._tensor_name
            else:
                self._tensor_name = method._tensor_name if self._tensor_name is None else self._tensor_name
                self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """One more; it must prune the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"prune: {type(method).__name__} is not a BasePruningMethod")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"prune: the container's methods prune {self._tensor_name!r}, this one prunes {method._tensor_name!r}"
            )
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The mask of the last method, which looks at what the ones before it left."""
        method, mask = self._pruning_methods[-1], default_mask.to(dtype=t.dtype).clone()
        if method.PRUNING_TYPE == "unstructured":
            place = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            place = (slice(None),) * dim + (mask.sum(others) != 0,)
        elif method.PRUNING_TYPE == "global":
            place = ...
        else:
            raise ValueError(
                f"prune: PRUNING_TYPE is {method.PRUNING_TYPE!r}; 'unstructured', 'structured' and 'global' are known"
            )
        mask[place] = method.compute_mask(t[place], default_mask=mask[place]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing."""

    def compute_mask(self, t, default_mask):
        """What is left."""
        return default_mask


class _OfAmount(BasePruningMethod):
    """Prunes a fraction of what is left, or a number."""

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _gone(self, size):
        _validate_pruning_amount(self.amount, size)
        return _compute_nparams_toprune(self.amount, size)


class _ByScores(_OfAmount):
    def compute_mask(self, t, default_mask):
        """See the base."""
        mask = default_mask.clone(memory_format=adjoin.contiguous_format)
        if gone := self._gone(t.nelement()):
            mask.view(-1)[self._scores(t).reshape(-1).topk(gone, largest=False).indices] = 0
        return mask


class L1Unstructured(_ByScores):
    """Elements of least magnitude."""

    @staticmethod
    def _scores(tensor):
        return tensor.abs()


class RandomUnstructured(_ByScores):
    """Elements at random."""

    @staticmethod
    def _scores(tensor):
        return adjoin.rand(tensor.shape, device=tensor.device)


class CustomFromMask(BasePruningMethod):
    """Prunes what is zero in a mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """See the base."""
        return default_mask * self.mask.to(default_mask.dtype)


class _Slices(_OfAmount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t, default_mask):
        """See the base."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        gone = self._gone(t.shape[self.dim])
        if not gone:
            return default_mask
        stays = adjoin.ones(t.shape[self.dim], dtype=default_mask.dtype, device=default_mask.device)
        stays[self._scores(t).topk(gone, largest=False).indices] = 0
        shape = [1] * t.dim()
        shape[self.dim] = -1
        return default_mask * stays.reshape(shape)


class LnStructured(_Slices):
    """Slices of a dimension whose n-norm is least."""

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t):
        return _compute_norm(t, self.n, self.dim)


class RandomStructured(_Slices):
    """Slices of a dimension at random."""

    def _scores(self, t):
        return adjoin.rand(t.shape[self.dim], device=t.device)


def identity(module, name):
    """Prunes nothing yet."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the elements of least magnitude: a fraction of those left, or a number of them."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes slices of a dimension at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the slices of a dimension whose n-norm is least."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prunes what is zero in a mask of the parameter's shape, beside what was pruned before."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes elements of several parameters, (module, name) each, as if they were one tensor."""
    if not hasattr(parameters, "__iter__"):
        raise TypeError(f"prune: parameters are pairs (module, name), not {type(parameters).__name__}")
    parameters, given = list(parameters), importance_scores or {}
    scores = adjoin.cat([given.get((m, n), getattr(m, n)).detach().reshape(-1) for m, n in parameters])
    masks = [getattr(m, n + "_mask", adjoin.ones_like(getattr(m, n))) for m, n in parameters]
    method = pruning_method(**kwargs)
    method._tensor_name = "all of them"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"prune: global_unstructured takes methods with PRUNING_TYPE 'unstructured', {pruning_method.__name__}'s is "
            f"{method.PRUNING_TYPE!r}"
        )
    whole = PruningContainer(method).compute_mask(scores, adjoin.cat([m.reshape(-1) for m in masks]))
    parts = whole.split([math.prod(m.shape) for m in masks])
    for (module, name), part, mask in zip(parameters, parts, masks, strict=True):
        custom_from_mask(module, name, part.reshape(mask.shape))


def remove(module, name):
    """Makes what is pruned a parameter of zeros that is trained like any other."""
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    found[1].remove(module)
    del module._forward_pre_hooks[found[0]]
    return module


def is_pruned(module):
    """Whether a parameter of the module or of one inside is pruned."""
    return any(isinstance(h, BasePruningMethod) for m in module.modules() for h in m._forward_pre_hooks.values())
