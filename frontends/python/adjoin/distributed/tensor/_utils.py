"""adjoin.distributed.tensor._utils: names that packages import; they raise when they are called."""


def compute_local_shape_and_global_offset(*args, **kwargs):
    """Raises: no tensor is cut over processes here."""
    raise NotImplementedError(
        "compute_local_shape_and_global_offset: tensors are not cut over processes here; DistributedDataParallel has each whole"
    )
