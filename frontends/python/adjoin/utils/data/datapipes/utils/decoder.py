"""adjoin.utils.data.datapipes.utils.decoder: what bytes of a file are, by the ending of its name."""

import io
import json
import os
import pickle

import adjoin

from .common import StreamWrapper

__all__ = ["Decoder", "basichandlers", "extension_extract_fn"]

_TEXTS, _NUMBERS = ("txt", "text", "transcript"), ("cls", "cls2", "class", "count", "index", "inx", "id")


def basichandlers(extension, data):
    """Texts, whole numbers, JSON, pickles and tensors; None for other endings."""
    if extension in _TEXTS:
        return data.decode("utf-8")
    if extension in _NUMBERS:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    return adjoin.load(io.BytesIO(data)) if extension == "pt" else None


def extension_extract_fn(pathname):
    """The ending of a path without its dot."""
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """``(path, stream or bytes)`` to ``(path, what the first handler gives that knows the ending)``; the stream is closed."""

    def __init__(self, *handler, key_fn=extension_extract_fn):
        self.handlers, self.key_fn = list(handler), key_fn

    def add_handler(self, *handler):
        """More handlers, asked after those that are there."""
        self.handlers += handler

    def decode1(self, key, data):
        """What the bytes of an ending are; the bytes where no handler knows it."""
        if hasattr(data, "read"):
            stream, data = data, data.read()
            if isinstance(stream, StreamWrapper):
                stream.close()
        for handler in self.handlers:
            made = handler(key, data)
            if made is not None:
                return made
        return data

    def decode(self, data):
        """A dictionary of names by name."""
        return {name: self.decode1(self.key_fn(name), value) for name, value in data.items()}

    def __call__(self, data):
        name, value = data
        return name, self.decode1(self.key_fn(name), value)
