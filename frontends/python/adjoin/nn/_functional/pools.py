"""adjoin.nn._functional.pools: pools whose number of results depends on an argument, and what
undoes them."""

import adjoin

from ..._overridden import handed_over, overridden
from . import op

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d", "fractional_max_pool3d", "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d_with_indices", "max_pool1d", "max_pool2d", "max_pool3d",
    "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def _named(function, name):
    function.__name__ = function.__qualname__ = name
    return function


def _max_pool(name):
    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
             return_indices=False):  # fmt: skip
        if overridden(input):
            return handed_over(pool, (input,), locals())
        function = op(name + "_with_indices" if return_indices else name)
        return function(input, kernel_size, stride, padding, dilation, ceil_mode)

    def both(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
             return_indices=False):  # fmt: skip
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    return _named(pool, name), _named(both, name + "_with_indices")


def _sizes(input, output_size):
    """None stands for the input's own size."""
    if isinstance(output_size, (tuple, list)) and None in output_size:
        kept = input.shape[-len(output_size) :]
        return [k if s is None else s for k, s in zip(kept, output_size, strict=False)]
    return output_size


def _adaptive_average(name):
    def pool(input, output_size):
        if overridden(input):
            return handed_over(pool, (input,), locals())
        return op(name)(input, _sizes(input, output_size))

    return _named(pool, name)


def _adaptive_max(name):
    def pool(input, output_size, return_indices=False):
        if overridden(input):
            return handed_over(pool, (input,), locals())
        function = op(name + "_with_indices" if return_indices else name)
        return function(input, _sizes(input, output_size))

    def both(input, output_size, return_indices=False):
        return pool(input, output_size, True)

    return _named(pool, name), _named(both, name + "_with_indices")


def _fractional(dims):
    name = f"fractional_max_pool{dims}d"

    def both(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
             _random_samples=None):  # fmt: skip
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        kernel = _each(kernel_size, dims)
        _all_have(name, dims, kernel_size=kernel)
        if output_size is None:
            ratios = _each(output_ratio, dims)
            if not all(0 < ratio < 1 for ratio in ratios):
                raise ValueError(f"{name}: output_ratio must be between 0 and 1: {ratios}")
            output_size = [int(n * ratio) for n, ratio in zip(input.shape[-dims:], ratios, strict=True)]
        sizes = _each(output_size, dims)
        _all_have(name, dims, output_size=sizes)
        samples = _random_samples
        if samples is None:
            batch = 1 if input.dim() == dims + 1 else input.size(0)
            samples = adjoin.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
        elif input.dim() == dims + 1:
            samples = samples[:1]  # those of a batch serve, too
        return op("fractional_max_pool")(input, kernel, sizes, samples)

    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
             _random_samples=None):  # fmt: skip
        if overridden(input, _random_samples):
            return handed_over(pool, (input, _random_samples), locals())
        results = both(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return tuple(results) if return_indices else results[0]

    return _named(pool, name), _named(both, name + "_with_indices")


def _each(value, count):
    return list(value) if isinstance(value, (tuple, list)) else [value] * count


def _all_have(name, dims, **sizes):
    for what, value in sizes.items():
        if len(value) != dims:
            raise RuntimeError(
                f"{name}: {what} must either be one number or {dims}; it has {len(value)} elements, {value}"
            )


def _unpool(dims):
    name = f"max_unpool{dims}d"

    def unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        if overridden(input, indices):
            return handed_over(unpool, (input, indices), locals())
        kernel = _each(kernel_size, dims)
        strides = kernel if stride is None else _each(stride, dims)
        paddings = _each(padding, dims)
        _all_have(name, dims, kernel_size=kernel, stride=strides, padding=paddings)
        if min(strides) <= 0:
            raise RuntimeError(f"{name}: stride must be positive, it is {strides}")
        size = _unpooled_size(name, input, kernel, strides, paddings, output_size)
        return op("max_unpool")(input, indices, size)

    return _named(unpool, name)


def _unpooled_size(name, input, kernel, stride, padding, output_size):
    dims = len(kernel)
    usual = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(input.shape[-dims:], kernel, stride, padding, strict=True)]
    if output_size is None:
        return usual
    output_size = list(output_size)
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, "
            f"but it has a length of '{len(output_size)}'"
        )
    for i, (size, middle, step) in enumerate(zip(output_size, usual, stride, strict=True)):
        if not middle - step < size < middle + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {i} must be between {middle - step} and {middle + step})'
            )
    return output_size


max_pool1d, max_pool1d_with_indices = _max_pool("max_pool1d")
max_pool2d, max_pool2d_with_indices = _max_pool("max_pool2d")
max_pool3d, max_pool3d_with_indices = _max_pool("max_pool3d")
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(
    _adaptive_average, ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
)
adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max("adaptive_max_pool1d")
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max("adaptive_max_pool2d")
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max("adaptive_max_pool3d")
fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3)
max_unpool1d, max_unpool2d, max_unpool3d = map(_unpool, (1, 2, 3))
