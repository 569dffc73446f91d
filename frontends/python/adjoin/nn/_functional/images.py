"""adjoin.nn._functional.images: resizing and sampling, whose arguments are numbers or lists, or may be left open."""

import warnings

from ..._overridden import handed_over, overridden
from . import op

__all__ = ["affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

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
    if overridden(input):
        return handed_over(interpolate, (input,), locals())
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
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate() by the nearest element."""
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate() bilinearly, with aligned corners."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _corners(align_corners, name):
    """Unsaid, they are not aligned; before 1.3 they were."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            f"align_corners=True if the old behavior is desired. See the documentation of {name} for details.",
            stacklevel=3,
        )
    return bool(align_corners)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """input at the places of grid, which run from -1 to 1 along each dimension."""
    if overridden(input, grid):
        return handed_over(grid_sample, (input, grid), locals())
    return op("grid_sample")(input, grid, mode, padding_mode, _corners(align_corners, "grid_sample"))


def affine_grid(theta, size, align_corners=None):
    """The places that affine maps read: grids for grid_sample."""
    if overridden(theta):
        return handed_over(affine_grid, (theta,), locals())
    corners = _corners(align_corners, "affine_grid")
    if corners and min(size[2:], default=2) == 1:
        warnings.warn(
            "affine_grid: with align_corners=True, a size of 1 has its only place at 0, the middle; since 1.3.0 it is no longer at -1. "
            "See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    return op("affine_grid")(theta, size, corners)
