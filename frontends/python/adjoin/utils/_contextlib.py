"""adjoin.utils._contextlib: contexts that are decorators, too, by PyTorch's names: libraries make theirs of these classes."""

import functools
import inspect


def _renewed(make, function):
    """The function inside of a new context at each call; a generator is inside whenever it runs, and outside in between."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def steps(*args, **kwargs):
            generator = function(*args, **kwargs)
            answer, failed = None, None
            while True:
                try:
                    with make():
                        got = generator.throw(failed) if failed else generator.send(answer)
                except StopIteration as end:
                    return end.value
                failed = None
                try:
                    answer = yield got
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:  # the generator's to see
                    failed = error

        return steps

    @functools.wraps(function)
    def call(*args, **kwargs):
        with make():
            return function(*args, **kwargs)

    return call


def context_decorator(ctx, func):
    """The function inside of a context: of an object, or of a function that makes one for each call."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise ValueError(f"context_decorator: {ctx} can be called and entered; pass a function that gives a context")
    make = ctx if callable(ctx) else lambda: ctx
    if isinstance(func, type):
        raise RuntimeError(
            f"context_decorator: {func.__name__} is a class; decorate its methods, or a function that makes objects"
        )
    return _renewed(make, func)


class _DecoratorContextManager:
    """The base of a context that decorates: ``clone()`` gives the context of one call."""

    def __call__(self, orig_func):
        if isinstance(orig_func, type):
            raise RuntimeError(
                f"{type(self).__name__}: {orig_func.__name__} is a class; decorate its methods, or a function that makes objects"
            )
        return _renewed(self.clone, orig_func)

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def clone(self):
        """Another one like this; its class is called without arguments."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without settings: ``@context`` does as ``@context()``."""

    def __new__(cls, orig_func=None):
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)
