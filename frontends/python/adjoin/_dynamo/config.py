"""adjoin._dynamo.config: switches that programs set. They are kept; `disable` is followed, the others
speak of tracing bytecode, which is not done."""

import contextlib

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = 256
verbose = suppress_errors = capture_scalar_outputs = capture_dynamic_output_shape_ops = False
dynamic_shapes = inline_inbuilt_nn_modules = assume_static_by_default = True
automatic_dynamic_shapes = optimize_ddp = True
disable = error_on_recompile = specialize_int = allow_unspec_int_on_nn_module = False


@contextlib.contextmanager
def patch(changes=None, **words):
    """``with patch(name=value):`` other values inside."""
    changes = {**({changes: words.pop("value", None)} if isinstance(changes, str) else changes or {}), **words}
    kept = {name: globals().get(name) for name in changes}
    globals().update(changes)
    try:
        yield
    finally:
        globals().update(kept)
