"""adjoin._triton_tables: PyTorch's tables of sizes for Triton's sparse kernels, of which there are none here."""


def get_meta(op, key, device_name=None, version=(0, None, 0.5), exact=False):
    """None: no sizes were measured for any kernel."""


def _refuse(*args, **kwargs):
    """Raises: there are no sparse kernels of Triton's to measure."""
    raise NotImplementedError(
        "sparse._triton_ops_meta: there are no sparse kernels of Triton's to measure; products of sparse tensors need no tables"
    )


minimize = update = _refuse
