"""adjoin._array_methods: what the array API standard asks of a tensor itself and PyTorch's tensors lack."""

import importlib

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def array_namespace(self, *, api_version=None):
    """The module with the functions of the array API standard."""
    if api_version not in (None, *VERSIONS):
        raise ValueError(
            f"__array_namespace__: version {api_version!r} is not served; give one of {', '.join(VERSIONS)}"
        )
    return importlib.import_module("adjoin.array_api")


def to_device(self, device, /, *, stream=None):
    """The tensor on another device; on its own, the tensor itself."""
    if stream is not None:
        raise ValueError(
            "to_device: stream must be None; a `with` of the stream around the call says where it is queued"
        )
    return self.to(device)
