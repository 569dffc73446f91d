"""adjoin._dynamo.config: switches that programs set. They are kept; `disable` is followed, the others
speak of tracing bytecode, which is not done."""

import contextlib

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = 256
verbose = suppress_errors = capture_scalar_outputs = capture_dynamic_output_shape_ops = False
dynamic_shapes = inline_inbuilt_nn_modules = assume_static_by_default = True
automatic_dynamic_shapes = optimize_ddp = True
disable = error_on_recompile = specialize_int = allow_unspec_int_on_nn_module = False


def patching(switches):
    """The patch() of a module with these globals; `group.name` reaches into a group."""

    def place(name):
        group, _, last = name.rpartition(".")
        return (vars(switches[group]) if group else switches), last

    @contextlib.contextmanager
    def patch(changes=None, **words):
        """``with patch(name=value):`` other values inside."""
        changes = {**({changes: words.pop("value", None)} if isinstance(changes, str) else changes or {}), **words}
        kept = {name: space.get(last) for name in changes for space, last in [place(name)]}

        def put(values):
            for name, value in values.items():
                space, last = place(name)
                space[last] = value

        put(changes)
        try:
            yield
        finally:
            put(kept)

    return patch


patch = patching(globals())
