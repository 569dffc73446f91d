"""adjoin.utils.hooks: the handle that takes a registered hook away again."""

import itertools
import warnings
import weakref
from collections import OrderedDict

_ids = itertools.count()


class RemovableHandle:
    """Removes one hook from the dictionary it was put into; also a context manager that does so on
    exit.

    ``hooks_dict`` must be an ``OrderedDict``, which unlike ``dict`` can be referred to weakly.
    Entries with the same id in the dictionaries of ``extra_dict`` go with it.
    """

    next_id = 0  # readers expect the attribute; ids themselves come from a shared counter

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = next(_ids)
        RemovableHandle.next_id = self.id + 1
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        if extra_dict is None:
            extras = ()
        elif isinstance(extra_dict, list):
            extras = tuple(extra_dict)
        else:
            extras = (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras)

    def remove(self):
        """Takes the hook away; doing so twice does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state):
        hooks, self.id, extras = state
        # A dictionary that did not survive is replaced by an empty one, so that remove() stays
        # harmless.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if e is None else e) for e in extras)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def unserializable_hook(f):
    """A decorator of a hook that need not travel: warn_if_has_hooks() says nothing of it."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Warns of hooks of a tensor that its pickle will not have."""
    for hook in list((getattr(tensor, "_backward_hooks", None) or {}).values()):
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, you can decorate the function with "
                "@torch.utils.hooks.unserializable_hook to suppress this warning", stacklevel=2,
            )  # fmt: skip
