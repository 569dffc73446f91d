"""adjoin._signature: the signature of an op for inspect, help and editors."""

import inspect


def signature_of(op):
    """An inspect.Signature made of the text that the schema became."""
    space = {"inf": float("inf"), "nan": float("nan")}
    exec(f"def f{op.__text_signature__}: pass", space)  # noqa: S102  (our own text)
    return inspect.signature(space["f"])
