"""adjoin.utils.weak: dictionaries whose keys are objects themselves, not what they are equal to, and which keep none alive."""

import copy as copying
import weakref
from collections.abc import Mapping, MutableMapping


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another of the same object."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __call__(self):
        """The object, or None if it is gone."""
        return super().__call__()

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        if not isinstance(other, WeakIdRef):
            return NotImplemented
        mine, theirs = self(), other()
        return self is other if mine is None or theirs is None else mine is theirs


TensorWeakRef = WeakIdRef


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary by identity; what nobody else holds leaves it."""

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.ref_type, self.data = ref_type, {}
        held = weakref.ref(self)

        def gone(key):
            owner = held()
            if owner is not None:
                owner.data.pop(key, None)

        self._gone = gone
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._gone)] = value

    def __delitem__(self, key):
        del self.data[self.ref_type(key)]

    def __contains__(self, key):
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # nothing refers weakly to it
            return False

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def __repr__(self):
        return f"<{type(self).__name__} of {len(self)}>"

    def __copy__(self):
        return type(self)(self, self.ref_type)

    copy = __copy__

    def __deepcopy__(self, memo):
        """The same keys, and copies of the values."""
        made = type(self)(None, self.ref_type)
        for key, value in self.items():
            made[key] = copying.deepcopy(value, memo)
        return made

    def __or__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(other, self.ref_type)
        made.update(self)
        return made

    def __ior__(self, other):
        self.update(other)
        return self

    def keyrefs(self):
        """The weak references."""
        return list(self.data)


class WeakTensorKeyDictionary(WeakIdKeyDictionary):
    """The same, for tensors."""


WeakTensorRefKey = WeakIdRef
