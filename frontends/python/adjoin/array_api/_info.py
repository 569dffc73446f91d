"""adjoin.array_api._info: what the library can do: devices, dtypes, limits."""

from .. import _C
from ._dtypes import KINDS


class _Info:
    """The answer of __array_namespace_info__()."""

    def capabilities(self):
        """What of the optional parts of the standard holds."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """Where arrays are made that name no device."""
        return _C.get_default_device()

    def devices(self):
        """The devices on which arrays can stand."""
        offers = ";".join(plugin["provides"] for plugin in _C.plugin_list()).split(";")
        kinds = dict.fromkeys(offer.partition(":")[2] for offer in offers if offer.startswith("device:"))
        found = [_C.device(kind, i) for kind in kinds for i in range(_C.device_count(kind))]
        return [_C.device("cpu") if device.type == "cpu" else device for device in found]

    def default_dtypes(self, *, device=None):
        """The dtypes of arrays that name none."""
        real = _C.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": _C.promote_types(real, _C.complex64),
            "integral": _C.int64,
            "indexing": _C.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        """The dtypes of a kind (or of several) by their names."""
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for one in kinds:
            if one not in KINDS:
                raise ValueError(f"dtypes: there is no kind {one!r}; the kinds are {', '.join(map(repr, KINDS))}")
        return {str(dtype).rpartition(".")[2]: dtype for one in kinds for dtype in KINDS[one]}


def __array_namespace_info__():
    """What this namespace can do."""
    return _Info()
