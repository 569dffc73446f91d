"""adjoin._signature: the signature of an op for inspect, help and editors."""

import inspect
import keyword
import re


def signature_of(op):
    """An inspect.Signature made of the text that the schema became.

    inspect takes no parameter that is a word of Python's (`from`); it gets an underscore behind it.
    """
    space = {"inf": float("inf"), "nan": float("nan")}
    text = re.sub(
        r"(?<=[(\s])\w+(?=[=,)])",
        lambda m: m[0] + "_" * (keyword.iskeyword(m[0]) and m[0] not in ("None", "True", "False")),
        op.__text_signature__,
    )
    exec(f"def f{text}: pass", space)  # noqa: S102  (our own text)
    return inspect.signature(space["f"])
