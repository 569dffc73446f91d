"""adjoin.fx.traceback: what nodes that are made now take over from the node that is run."""

import contextlib
import threading

__all__ = [
    "annotate", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta", "set_current_meta",
    "set_stack_trace",
]  # fmt: skip

_state = threading.local()
_KEPT = ("stack_trace", "nn_module_stack", "source_fn_stack", "custom")


def _meta():
    return _state.__dict__.setdefault("meta", {})


def get_current_meta():
    """The notes of the node that is run."""
    return dict(_meta())


@contextlib.contextmanager
def set_current_meta(node, pass_name=""):
    """In the block new nodes get the node's notes."""
    before = _meta()
    _state.meta = {key: node.meta[key] for key in _KEPT if key in node.meta}
    try:
        yield
    finally:
        _state.meta = before


@contextlib.contextmanager
def annotate(annotation_dict):
    """In the block new nodes get these notes, as ``meta["custom"]``."""
    before = _meta()
    _state.meta = {**before, "custom": {**before.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        _state.meta = before


@contextlib.contextmanager
def preserve_node_meta(enable=True):
    """Notes are always taken over."""
    yield


def has_preserved_node_meta():
    """Whether notes are taken over: they are."""
    return True


def set_stack_trace(stack):
    """The lines that new nodes get."""
    _meta()["stack_trace"] = "".join(stack)


def format_stack():
    """The lines that new nodes get now, in a list."""
    return [_meta()["stack_trace"]] if "stack_trace" in _meta() else []
