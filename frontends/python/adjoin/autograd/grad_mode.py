"""adjoin.autograd.grad_mode: the modes of recording, and what they are as decorators."""

import functools
import threading

from .._C import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: F401


class set_multithreading_enabled:
    """Whether a backward pass may run on other threads than its caller's. None does here, so both modes give the same."""

    def __init__(self, mode):
        self._before, _threads.allowed = is_multithreading_enabled(), bool(mode)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        _threads.allowed = self._before

    def clone(self):
        return type(self)(is_multithreading_enabled())


def is_multithreading_enabled():
    """What set_multithreading_enabled has said in this thread."""
    return getattr(_threads, "allowed", True)


_threads = threading.local()
_TAKES_VALUE = (set_grad_enabled, inference_mode)


def _decorate(mode, value, function):
    """function, run in a mode; a generator is in it whenever it runs, not in between."""

    def make():
        return mode(value) if mode in _TAKES_VALUE else mode()

    if isinstance(function, type):
        made = function.__init__
        function.__init__ = _decorate(mode, value, made)
        return function
    if getattr(function, "__code__", None) is not None and function.__code__.co_flags & 0x20:
        return _decorate_generator(make, function)

    @functools.wraps(function)
    def run(*args, **kwargs):
        with make():
            return function(*args, **kwargs)

    return run


def _decorate_generator(make, function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        generator = function(*args, **kwargs)
        try:
            with make():
                sent = next(generator)
            while True:
                try:
                    received = yield sent
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as e:  # noqa: BLE001  (it belongs to the generator)
                    with make():
                        sent = generator.throw(e)
                else:
                    with make():
                        sent = generator.send(received)
        except StopIteration as stop:
            return stop.value

    return run
