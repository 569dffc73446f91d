"""adjoin.nn.modules._advice: what to do about what cannot be a part of a module, for its messages."""


def module_wanted(value):
    """What to give where a module is wanted and ``value`` was found."""
    if isinstance(value, type):
        return f"{value.__name__} is a class: give one made of it, {value.__name__}(...)"
    if isinstance(value, (list, tuple)):
        return "give its modules one by one, with a star: *modules"
    if callable(value):
        return "call a function in forward(), or give the layer of its kind"
    return "give an instance of a class of adjoin.nn"


def init_first(module):
    return f"call super().__init__() first in {type(module).__name__}.__init__"


def like_forward(module):
    """What to do where a class has no forward, by what its own functions are called."""
    import difflib

    from ..._names import is_ours

    own = [name for cls in type(module).__mro__ if not is_ours(cls.__module__) for name in vars(cls)]
    close = difflib.get_close_matches("forward", own, n=1)
    return f"rename {close[0]!r} to it" if close else "define forward(self, input)"
