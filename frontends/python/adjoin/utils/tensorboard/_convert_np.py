"""adjoin.utils.tensorboard._convert_np: numbers and tensors as NumPy's arrays, under PyTorch's name."""

from ._pictures import as_tensor

__all__ = ["make_np"]


def make_np(x):
    """An array of at least one dimension."""
    import numpy

    import adjoin

    if isinstance(x, list):
        return numpy.array(x)
    if isinstance(x, numpy.ndarray):
        return x
    if numpy.isscalar(x):
        return numpy.array([x])
    if isinstance(x, adjoin.Tensor):
        x = as_tensor(x)
        return (x.float() if x.dtype == adjoin.bfloat16 else x).numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
