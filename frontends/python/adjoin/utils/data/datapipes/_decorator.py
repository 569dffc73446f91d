"""adjoin.utils.data.datapipes._decorator: what is said of pipes and their methods by decorators."""

import functools
import inspect
import typing

from .datapipe import IterDataPipe, MapDataPipe, _Pipe


class functional_datapipe:
    """A decorator: the class of pipes can be written ``pipe.NAME(...)``."""

    def __init__(self, name, enable_df_api_tracing=False):
        self.name, self.tracing = name, enable_df_api_tracing

    def __call__(self, cls):
        owner = getattr(cls, "__self__", cls)  # a method of non_deterministic
        kind = owner.cls if isinstance(owner, non_deterministic) else cls
        if isinstance(kind, type) and issubclass(kind, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls, enable_df_api_tracing=self.tracing)
        elif isinstance(kind, type) and issubclass(kind, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        else:
            raise TypeError(f"functional_datapipe: {cls!r} is no class of IterDataPipe or MapDataPipe")
        return cls


_settings = {"determinism": False, "validation": True}


class _Setting:
    _name, _value = "", None

    def __init__(self):
        self._before = _settings[self._name]
        _settings[self._name] = self._value

    def __enter__(self):
        return None

    def __exit__(self, *error):
        _settings[self._name] = self._before


class guaranteed_datapipes_determinism(_Setting):
    """From here on, or within a with statement, pipes that are called non_deterministic cannot be made."""

    _name, _value = "determinism", True


class runtime_validation_disabled(_Setting):
    """From here on, or within a with statement, runtime_validation looks at nothing."""

    _name, _value = "validation", False


class non_deterministic:
    """A decorator of IterDataPipe: the order of the data is left to chance; with a function of the arguments, where that is true."""

    cls = deterministic_fn = None

    def __init__(self, arg):
        if isinstance(arg, type):
            self.cls = self._checked(arg)
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(
                f"{arg} can not be decorated by non_deterministic; a class of IterDataPipe or a function is wanted"
            )

    @staticmethod
    def _checked(cls):
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            name = getattr(cls, "__name__", cls)
            raise TypeError(f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {name} is found")
        return cls

    def __call__(self, *args, **kwargs):
        if self.cls is None:
            self.cls = self._checked(args[0])
            return self.deterministic_wrapper_fn
        self._refuse(True)
        return self.cls(*args, **kwargs)

    def deterministic_wrapper_fn(self, *args, **kwargs):
        """Makes the pipe, if its arguments and the program allow."""
        by_chance = self.deterministic_fn(*args, **kwargs)
        if not isinstance(by_chance, bool):
            raise TypeError(f"non_deterministic: its function has to give a bool, not {type(by_chance)}")
        self._refuse(by_chance)
        return self.cls(*args, **kwargs)

    def _refuse(self, by_chance):
        if by_chance and _settings["determinism"]:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'; leave it to make this pipe"
            )


def argument_validation(f):
    """A decorator: arguments with the hint ``IterDataPipe[...]`` have to be pipes of such data."""
    signature, hints = inspect.signature(f), typing.get_type_hints(f)

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            if not (isinstance(hint, type) and issubclass(hint, _Pipe)):
                continue
            if not isinstance(value, IterDataPipe):
                raise TypeError(f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}")
            if not value.type.issubtype(hint.type):
                raise TypeError(
                    f"Expected type of argument '{name}' as a subtype of hint {hint.type}, but found {value.type}"
                )
        return f(*args, **kwargs)

    return wrapper


def runtime_validation(f):
    """A decorator of ``__iter__``: each example has to be as the pipe's hint says."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'; it looks at __iter__")

    @functools.wraps(f)
    def wrapper(self):
        for example in f(self):
            if _settings["validation"] and not self.type.issubtype_of_instance(example):
                raise RuntimeError(
                    f"Expected an instance as subtype of {self.type}, but found {example}({type(example)})"
                )
            yield example

    return wrapper
