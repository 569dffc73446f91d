"""adjoin.utils.data.datapipes.datapipe: the classes that steps of a chain are made of."""

import enum
import functools
import typing

from ..dataset import Dataset, IterableDataset
from ._typing import PipeType


class _SnapshotState(enum.Enum):
    """Restored: the next iterator goes on where utils.snapshot has brought the pipe."""

    NotStarted, Iterating, Restored = range(3)


class _Pipe:
    """What pipes of both kinds have: the hint of their data, functional forms, hooks for pickle and print."""

    functions = {}
    reduce_ex_hook = getstate_hook = str_hook = repr_hook = None
    type = PipeType(typing.Any)

    def __class_getitem__(cls, hint):
        hint = hint if not isinstance(hint, tuple) else tuple[hint]
        return type(cls.__name__, (cls,), {"type": PipeType(hint), "__module__": cls.__module__, "__qualname__": cls.__qualname__,
                                           "__doc__": cls.__doc__})  # fmt: skip

    def __getattr__(self, name):
        function = self.functions.get(name)
        if function is None:
            known = ", ".join(sorted(self.functions))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}; functional forms: {known}")
        return functools.update_wrapper(functools.partial(function, self), function, assigned=("__doc__",))

    @classmethod
    def register_function(cls, function_name, function):
        """``pipe.NAME(...)`` is then ``function(pipe, ...)``."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register, enable_df_api_tracing=False):
        """``pipe.NAME(...)`` is then the class called with the pipe and the arguments."""
        if function_name in cls.functions:
            raise Exception(  # noqa: TRY002  (PyTorch's)
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        if enable_df_api_tracing:
            raise NotImplementedError(
                "functional_datapipe: data frames are not traced; leave enable_df_api_tracing out"
            )

        def make(pipe, *args, **kwargs):
            return cls_to_register(pipe, *args, **kwargs)

        make.__doc__ = f"{cls_to_register.__doc__ or ''}\n\n(functional name: ``{function_name}``)"
        cls.functions[function_name] = make

    def __getstate__(self):
        hook = type(self).getstate_hook
        kept = {k: v for k, v in self.__dict__.items() if k not in ("_fast_forward_iterator", "_snapshot_state")}
        return kept if hook is None else hook(kept)

    def __reduce_ex__(self, *args):
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args)

    @classmethod
    def set_getstate_hook(cls, hook_fn):
        """What pickle takes for the state of a pipe is ``hook_fn(its dict)``; None takes the hook away."""
        cls._set_hook("getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn):
        """What pickle makes of a pipe is ``hook_fn(pipe)``, unless it raises NotImplementedError; None takes the hook away."""
        cls._set_hook("reduce_ex_hook", hook_fn)

    @classmethod
    def _set_hook(cls, name, hook):
        if hook is not None and getattr(cls, name) is not None:
            raise RuntimeError(f"Attempt to override existing {name}; set it to None first")
        if hook is not None:
            setattr(cls, name, staticmethod(hook))
        elif name in cls.__dict__:
            delattr(cls, name)

    def __repr__(self):
        return type(self).__qualname__ if self.repr_hook is None else type(self).repr_hook(self)

    def __str__(self):
        return type(self).__qualname__ if self.str_hook is None else type(self).str_hook(self)

    def __dir__(self):
        return [*super().__dir__(), *self.functions]


class _Iterator:
    """An iterator of a pipe, good until the pipe gives another."""

    def __init__(self, pipe, number, inner):
        self._pipe, self._number, self._inner = pipe, number, inner

    def __iter__(self):
        return self

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __next__(self):
        if self._pipe._valid_iterator_id != self._number:
            raise RuntimeError(
                f"This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
                f"{self._pipe!r}; fork() the data, or finish one loop before the next"
            )
        example = next(self._inner)
        self._pipe._number_of_samples_yielded += 1
        return example


def _guarded(function):
    @functools.wraps(function)
    def __iter__(self):
        if self._snapshot_state is _SnapshotState.Restored:
            self._snapshot_state, going = _SnapshotState.Iterating, self._fast_forward_iterator
            self._fast_forward_iterator = None
            return going
        self._valid_iterator_id = number = (self._valid_iterator_id or 0) + 1
        self._number_of_samples_yielded, self._snapshot_state = 0, _SnapshotState.Iterating
        self.reset()
        return _Iterator(self, number, function(self))

    return __iter__


class IterDataPipe(_Pipe, IterableDataset):
    """A step over a stream: a subclass defines ``__iter__``, and ``reset()`` if it keeps something between examples.

    One iterator at a time is good: to ask for another ends the first. What is registered by functional_datapipe can be
    written ``pipe.NAME(...)``.
    """

    functions = {}
    _valid_iterator_id, _number_of_samples_yielded = None, 0
    _snapshot_state, _fast_forward_iterator = _SnapshotState.NotStarted, None

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "__iter__" in cls.__dict__:
            cls.__iter__ = _guarded(cls.__dict__["__iter__"])

    def __iter__(self):
        return self

    def reset(self):
        """Called before each iteration; does nothing unless a subclass says what."""


class DFIterDataPipe(IterDataPipe):
    """A stream of data frames. Its functional forms work on whole frames; what is done to them is not traced."""

    def _is_dfpipe(self):
        return True


class MapDataPipe(_Pipe, Dataset):
    """A step over data with keys: a subclass defines ``__getitem__`` and, for most samplers, ``__len__``."""

    functions = {}


class DataChunk(list):
    """A batch of a pipe: a list that shows itself as text, and gives its items as they are by raw_iterator()."""

    def __init__(self, items):
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent=""):
        """The items in brackets, after the indent."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def raw_iterator(self):
        """The items as they were given."""
        yield from self.items
