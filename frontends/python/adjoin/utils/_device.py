"""adjoin.utils._device: where the functions that make tensors make them, inside of a function or a block."""

import functools
import inspect

import adjoin

__all__ = ["DeviceContext", "set_device"]


class DeviceContext:
    """``with DeviceContext(device):`` what is made without a word on its device is made there."""

    def __init__(self, device):
        self.device = adjoin.device(device)
        self._open = []

    def __enter__(self):
        place = adjoin.device(self.device)
        place.__enter__()
        self._open.append(place)
        return self

    def __exit__(self, *exc):
        self._open.pop().__exit__(*exc)


def set_device(device):
    """A decorator: the function runs within ``adjoin.device(device)``."""

    def decorate(function):
        if inspect.isclass(function):
            raise RuntimeError(f"set_device: {function.__name__} is a class; decorate its functions")

        @functools.wraps(function)
        def placed(*args, **kwargs):
            with adjoin.device(device):
                return function(*args, **kwargs)

        return placed

    return decorate
