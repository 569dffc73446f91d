"""adjoin.utils.module_tracker: which modules are at work, in the forward pass and in backward."""

import weakref

from ..autograd.graph import register_multi_grad_hook
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_flatten

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """``with ModuleTracker() as tracker:`` keeps ``tracker.parents``, the names of the modules that are running, and "Global";
    ``tracker.is_bw`` says whether backward is."""

    def __init__(self):
        self.parents, self._names, self._hooks = {"Global"}, weakref.WeakKeyDictionary(), []
        self._roots = weakref.WeakSet()

    @property
    def is_bw(self):
        """Whether a backward pass is running."""
        from .. import _C

        return bool(_C.backward_passes())

    def _name(self, module):
        if module not in self._names:
            own = type(module).__name__
            self._names[module] = own
            self._roots.add(module)
            for name, inner in module.named_modules():
                if name:
                    self._names.setdefault(inner, f"{own}.{name}")
        return self._names[module]

    def _entering(self, name):
        def enter(_=None):
            self.parents.add(name)

        return enter

    def _leaving(self, name):
        def leave(_=None):
            self.parents.discard(name)

        return leave

    def _before(self, module, args):
        name = self._name(module)
        self.parents.add(name)
        tensors = [a for a in tree_flatten(args)[0] if getattr(a, "requires_grad", False)]
        if tensors:  # the last that backward does for the module
            self._hooks.append(register_multi_grad_hook(tensors, self._leaving(name)))

    def _after(self, module, args, output):
        name = self._name(module)
        self.parents.discard(name)
        tensors = [t for t in tree_flatten(output)[0] if getattr(t, "requires_grad", False)]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, self._entering(name), mode="any"))

    def __enter__(self):
        self._handles = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)]
        return self

    def __exit__(self, *exc):
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._hooks.clear()
