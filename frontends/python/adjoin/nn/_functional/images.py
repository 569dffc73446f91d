"""adjoin.nn._functional.images: resizing, whose arguments are numbers or lists."""

from . import op

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}
__all__ += ["GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES"]


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,
                recompute_scale_factor=None, antialias=False):  # fmt: skip
    """Images (N, C, ...) of one to three spatial dimensions resized to ``size`` or by
    ``scale_factor``: nearest, nearest-exact, linear, bilinear, trilinear, bicubic or area.

    ``align_corners``: the outermost centers meet, not the outermost edges. ``antialias`` widens
    the filter of bilinear and bicubic where images shrink.
    """
    dims = max(input.dim() - 2, 0)
    size = _each(size, dims, "size", int)
    scale_factor = _each(scale_factor, dims, "scale_factor", float)
    return op("interpolate")(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)


def _each(value, dims, name, kind):
    """One number for each spatial dimension."""
    if value is None:
        return None
    if not isinstance(value, (tuple, list)):
        return [kind(value)] * dims
    if len(value) != dims:
        raise ValueError(
            f"interpolate: {name} must be one number or {dims} for input of {dims + 2} dimensions, it is {list(value)}"
        )
    return [kind(v) for v in value]


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate() by its old name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate() by the nearest element."""
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate() bilinearly, with aligned corners."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
