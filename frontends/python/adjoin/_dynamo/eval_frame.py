"""adjoin._dynamo.eval_frame: the class of compiled modules, for isinstance(): none is one."""

from ..nn.modules.module import Module


class OptimizedModule(Module):
    """A module that was compiled; here none is, so isinstance() says no."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("OptimizedModule: modules run as Python here; use the module itself")


def unsupported(*args, **kwargs):
    """Raises: only a tracer could answer."""
    raise NotImplementedError("_dynamo: functions run as Python here")
