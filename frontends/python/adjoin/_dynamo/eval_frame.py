"""adjoin._dynamo.eval_frame: the class of compiled modules."""

from ..nn.modules.module import Module


class OptimizedModule(Module):
    """What compile() makes of a module: its own parameters, and its calls matched with those of earlier times."""

    def __init__(self, module, flags=0, replay=False, dynamic=None):
        super().__init__()
        from .._compile import compiled_function

        self.add_module("_orig_mod", module)
        object.__setattr__(self, "_compiled", compiled_function(module.__call__, flags, replay, dynamic))
        self.explain = self._compiled.explain
        self.training = module.training

    def __call__(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)

    def forward(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name):
        modules = self.__dict__.get("_modules", {})
        if name == "_orig_mod" and name in modules:
            return modules[name]
        return getattr(modules["_orig_mod"], name) if "_orig_mod" in modules else super().__getattr__(name)

    def __setattr__(self, name, value):
        # What others set is the module's: a new layer, a flag.
        if name in ("training", "explain", "_compiled") or "_orig_mod" not in self.__dict__.get("_modules", {}):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def train(self, mode=True):
        super().train(mode)
        return self

    def __reduce__(self):
        return OptimizedModule, (self._orig_mod,)


def unsupported(*args, **kwargs):
    """Raises: only a tracer of bytecode could answer."""
    raise NotImplementedError("_dynamo: the Python of functions runs as it is here")


def is_dynamo_supported():
    """Whether bytecode is rewritten: it is not; ``compile()`` records and matches calls."""
    return False
