"""adjoin._dynamo.decorators: the decorators at their other path."""

from . import (  # noqa: F401
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    forbid_in_graph,
    graph_break,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    skip,
    substitute_in_graph,
)
