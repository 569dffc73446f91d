"""adjoin.utils.tensorboard._plugins: what TensorBoard's plugins for meshes and for diagrams of several curves read."""

import json
import struct

from . import _events
from ._pictures import as_tensor

_VERTEX, _FACE, _COLOR = 1, 2, 3
_FLOAT, _UINT8, _INT32, _STRING = 1, 4, 3, 7


def _about(plugin, content):
    """The metadata of a value: who reads it, and what he must know."""
    return _events.block(9, _events.block(1, _events.block(1, plugin) + _events.block(2, content)))


def _tensor(kind, shape, data):
    dims = b"".join(_events.block(2, _events.integer(1, size)) for size in shape)
    return _events.block(8, _events.integer(1, kind) + _events.block(2, dims) + data)


def mesh(tag, vertices, colors=None, faces=None, config_dict=None):
    """(tag, content) of each part of a mesh: vertices [batch, n, 3], colors [batch, n, 3], faces [batch, m, 3]."""
    parts = [(_VERTEX, "VERTEX", vertices, _FLOAT), (_FACE, "FACE", faces, _INT32), (_COLOR, "COLOR", colors, _UINT8)]
    parts = [(kind, name, as_tensor(t), dtype) for kind, name, t, dtype in parts if t is not None]
    for _, name, t, _ in parts:
        if t.dim() != 3 or t.shape[-1] != 3:
            raise ValueError(f"add_mesh: {name.lower()} data have shape {tuple(t.shape)}, wanted is (batch, count, 3)")
    all_parts = sum(1 << kind for kind, *_ in parts)
    for kind, name, t, dtype in parts:
        about = _events.integer(1, 0) + _events.block(2, tag) + _events.integer(3, kind)
        about += _events.block(5, json.dumps(config_dict or {}, sort_keys=True))
        about += b"".join(_events.integer(6, size) for size in t.shape) + _events.integer(7, all_parts)
        numbers = t.reshape(-1).tolist()
        if dtype == _FLOAT:
            data = _events.block(5, struct.pack(f"<{len(numbers)}f", *numbers))
        else:
            data = _events.block(7, b"".join(_events.varint(int(x)) for x in numbers))
        yield f"{tag}_{name}", _about("mesh", about) + _tensor(dtype, t.shape, data)


def custom_scalars(layout):
    """The content that says which scalars stand in one diagram: ``{category: {title: ["Multiline" or "Margin", tags]}}``."""
    said = b""
    for category, charts in layout.items():
        inside = _events.block(1, category)
        for title, (kind, tags) in charts.items():
            if kind not in ("Multiline", "Margin") or (kind == "Margin" and len(tags) != 3):
                raise ValueError(
                    f"add_custom_scalars: {title!r} is {kind!r} of {len(tags)} tags; wanted is 'Multiline', or 'Margin' of 3: value, lower, upper"
                )
            if kind == "Multiline":
                chart = _events.block(2, b"".join(_events.block(1, tag) for tag in tags))
            else:
                names = b"".join(_events.block(i + 1, tag) for i, tag in enumerate(tags))
                chart = _events.block(3, _events.block(1, names))
            inside += _events.block(2, _events.block(1, title) + chart)
        said += _events.block(2, inside)
    text = _events.integer(1, _STRING) + _events.block(2, b"") + _events.block(8, said)
    return _about("custom_scalars", b"") + _events.block(8, text)
