"""adjoin.utils._foreach_utils: lists of tensors in groups that one call of a foreach op takes."""


def _get_foreach_kernels_supported_devices():
    """The kinds of devices whose lists are worth a call of their own."""
    return ["cuda"]


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """{(device, dtype): (lists, places)}: the columns of some lists, by the first list's tensors. A list may hold None."""
    first = tensorlistlist[0]
    for tensors in tensorlistlist:
        if tensors and len(tensors) != len(first):
            raise RuntimeError(
                f"the lists have {len(first)} and {len(tensors)} tensors; all must have as many, or none"
            )
    groups = {}
    for place, tensor in enumerate(first):
        lists, places = groups.setdefault((tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], []))
        for kept, tensors in zip(lists, tensorlistlist, strict=True):
            if tensors:
                kept.append(tensors[place])
        if with_indices:
            places.append(place)
    return groups


def _device_has_foreach_support(device):
    """Whether a list on a device is worth a call of its own."""
    return device.type in _get_foreach_kernels_supported_devices()


def _has_foreach_support(tensors, device):
    """Whether a list's tensors are of that kind."""
    return _device_has_foreach_support(device) and all(t is None or t.device.type == device.type for t in tensors)
