"""bench/sweep_windows.py: everything that reads windows: pads, pools, convolutions, norms, resampling.

Options as sweep.py's; one, two and three dimensions, each mode.
"""

from sweep_run import IMAGE, LINE, VOLUME, form, leaf, main

PLACES = (("1d", LINE, 1), ("2d", IMAGE, 2), ("3d", VOLUME, 3))


def convolutions():
    shapes = (
        ("conv1d", LINE, "64, 64, 5", "padding=2"),
        ("conv1d_depthwise", LINE, "64, 1, 5", "padding=2, groups=64"),
        ("conv1d_depthwise_s2", LINE, "64, 1, 3", "padding=1, stride=2, groups=64"),
        ("conv1d_depthwise_dilated", LINE, "64, 1, 3", "padding=4, dilation=4, groups=64"),
        ("conv1d_depthwise_same", LINE, "64, 1, 4", "padding='same', groups=64"),
        ("conv1d_grouped", LINE, "64, 16, 5", "padding=2, groups=4"),
        ("conv1d_multiplier", LINE, "128, 1, 5", "padding=2, groups=64"),
        ("conv1d_dilated", LINE, "64, 64, 5", "padding=4, dilation=2"),
        ("conv1d_point", LINE, "64, 64, 1", "padding=0"),
        ("conv1d_s2", LINE, "64, 64, 5", "padding=2, stride=2"),
        ("conv1d_one", "x=T.randn(16, 1, 4096)", "32, 1, 64", "stride=4"),
        ("conv2d_depthwise", IMAGE, "32, 1, 3, 3", "padding=1, groups=32"),
        ("conv2d_depthwise5", IMAGE, "32, 1, 5, 5", "padding=2, groups=32"),
        ("conv2d_depthwise7", IMAGE, "32, 1, 7, 7", "padding=3, groups=32"),
        ("conv2d_depthwise_s2", IMAGE, "32, 1, 3, 3", "padding=1, stride=2, groups=32"),
        ("conv2d_depthwise_dilated", IMAGE, "32, 1, 3, 3", "padding=2, dilation=2, groups=32"),
        ("conv2d_depthwise_line", IMAGE, "32, 1, 1, 7", "padding=(0, 3), groups=32"),
        ("conv2d_multiplier", IMAGE, "64, 1, 3, 3", "padding=1, groups=32"),
        ("conv2d_multiplier_s2", IMAGE, "64, 1, 3, 3", "padding=1, stride=2, groups=32"),
        ("conv2d_grouped", IMAGE, "32, 8, 3, 3", "padding=1, groups=4"),
        ("conv2d_pairs", IMAGE, "32, 2, 3, 3", "padding=1, groups=16"),
        ("conv2d_dilated", IMAGE, "32, 32, 3, 3", "padding=2, dilation=2"),
        ("conv2d_same", IMAGE, "32, 32, 3, 3", "padding='same'"),
        ("conv3d", VOLUME, "32, 16, 3, 3, 3", "padding=1"),
        ("conv3d_point", VOLUME, "32, 16, 1, 1, 1", "padding=0"),
        ("conv3d_s2", VOLUME, "32, 16, 3, 3, 3", "padding=1, stride=2"),
        ("conv3d_dilated", VOLUME, "16, 16, 3, 3, 3", "padding=2, dilation=2"),
        ("conv3d_depthwise", VOLUME, "16, 1, 3, 3, 3", "padding=1, groups=16"),
        ("conv3d_depthwise_s2", VOLUME, "16, 1, 3, 3, 3", "padding=1, stride=2, groups=16"),
        ("conv3d_depthwise_dilated", VOLUME, "16, 1, 3, 3, 3", "padding=2, dilation=2, groups=16"),
        ("conv3d_multiplier", VOLUME, "32, 1, 3, 3, 3", "padding=1, groups=16"),
        ("conv3d_grouped", VOLUME, "16, 4, 3, 3, 3", "padding=1, groups=4"),
    )
    for name, x, weight, how in shapes:
        form(name, f"{x}; w=T.randn({weight})*.1", f"F.{name[:6]}(x, w, {how})")
    for name, x, weight, how in (
        ("conv_transpose1d", LINE, "64, 32, 4", "stride=2, padding=1"),
        ("conv_transpose1d_depthwise", LINE, "64, 1, 4", "stride=2, padding=1, groups=64"),
        ("conv_transpose1d_dilated", LINE, "64, 32, 3", "dilation=2"),
        ("conv_transpose2d", IMAGE, "32, 16, 4, 4", "stride=2, padding=1"),
        ("conv_transpose2d_s1", IMAGE, "32, 32, 3, 3", "padding=1"),
        ("conv_transpose2d_depthwise", IMAGE, "32, 1, 4, 4", "stride=2, padding=1, groups=32"),
        ("conv_transpose2d_depthwise_s1", IMAGE, "32, 1, 3, 3", "padding=1, groups=32"),
        ("conv_transpose2d_dilated", IMAGE, "32, 32, 3, 3", "dilation=2, padding=2"),
        ("conv_transpose2d_grouped", IMAGE, "32, 8, 4, 4", "stride=2, padding=1, groups=2"),
        ("conv_transpose3d", VOLUME, "16, 8, 4, 4, 4", "stride=2, padding=1"),
        ("conv_transpose3d_depthwise", VOLUME, "16, 1, 4, 4, 4", "stride=2, padding=1, groups=16"),
        ("conv_transpose3d_grouped", VOLUME, "16, 4, 4, 4, 4", "stride=2, padding=1, groups=2"),
    ):
        form(name, f"{x}; w=T.randn({weight})*.1", f"F.{name[:16]}(x, w, {how})")


def pools():
    for n, x, _ in PLACES:
        form(f"max_pool{n}", x, f"F.max_pool{n}(x, 2)")
        form(f"max_pool{n}_3s2", x, f"F.max_pool{n}(x, 3, 2, 1)")
        form(f"max_pool{n}_3s1", x, f"F.max_pool{n}(x, 3, 1, 1)")
        form(f"max_pool{n}_3s3", x, f"F.max_pool{n}(x, 3)")
        form(f"max_pool{n}_dilated", x, f"F.max_pool{n}(x, 3, 2, 1, 2)")
        form(f"max_pool{n}_indices", x, f"F.max_pool{n}(x, 2, return_indices=True)[0]")
        form(f"avg_pool{n}", x, f"F.avg_pool{n}(x, 2)")
        form(f"avg_pool{n}_3s1", x, f"F.avg_pool{n}(x, 3, 1, 1)")
        form(f"avg_pool{n}_3s2", x, f"F.avg_pool{n}(x, 3, 2, 1)")
        form(f"avg_pool{n}_4s4", x, f"F.avg_pool{n}(x, 4)")
        for size in (1, 7):
            form(f"adaptive_avg_pool{n}_{size}", x, f"F.adaptive_avg_pool{n}(x, {size})")
            form(f"adaptive_max_pool{n}_{size}", x, f"F.adaptive_max_pool{n}(x, {size})")
        form(f"lp_pool{n}", x, f"F.lp_pool{n}(x, 2., 2)")
        form(f"lp_pool{n}_3s2", x, f"F.lp_pool{n}(x, 3., 3, 2)")
        pooled = f"y,i=F.max_pool{n}({x[2:]},2,return_indices=True)"
        form(f"max_unpool{n}", pooled, f"F.max_unpool{n}(y, i, 2)")
    for size, stride in ((2, 5), (3, 5), (3, 7), (7, 7), (11, 5)):
        form(f"max_pool1d_{size}s{stride}", LINE, f"F.max_pool1d(x, {size}, {stride})")
    for n, x, _ in PLACES:
        form(f"max_pool{n}_bfloat16", f"{x}.bfloat16()", f"F.max_pool{n}(x, 3, 2, 1)")
        form(f"max_pool{n}_2_bfloat16", f"{x}.bfloat16()", f"F.max_pool{n}(x, 2)")
    form("max_pool1d_3s5_bfloat16", f"{LINE}.bfloat16()", "F.max_pool1d(x, 3, 5)")
    for dims, x in ((2, IMAGE), (3, VOLUME)):
        form(f"fractional_max_pool{dims}d", x, f"F.fractional_max_pool{dims}d(x, 2, output_ratio=(.6,) * {dims})")
    form("tensor_unfold", LINE, "x.unfold(2, 16, 8).contiguous()")
    form("unfold", IMAGE, "F.unfold(x, 3, padding=1)")
    form("unfold_s2", IMAGE, "F.unfold(x, 3, padding=1, stride=2)")
    form("unfold_dilated", IMAGE, "F.unfold(x, 3, padding=2, dilation=2)")
    form("unfold_patches", IMAGE, "F.unfold(x, 8, stride=8)")
    form("fold", "x=" + leaf(8, 288, 3136), "F.fold(x, (56, 56), 3, padding=1)")
    form("fold_s2", "x=" + leaf(8, 288, 784), "F.fold(x, (56, 56), 3, padding=1, stride=2)")
    form("fold_patches", "x=" + leaf(8, 2048, 49), "F.fold(x, (56, 56), 8, stride=8)")


def resampling():
    modes = {"1d": ("nearest", "linear", "area"), "3d": ("nearest", "nearest-exact", "trilinear", "area")}
    modes["2d"] = ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
    for n, x, _ in PLACES:
        for mode in modes[n]:
            form(f"interpolate{n}_{mode}_up", x, f"F.interpolate(x, scale_factor=2., mode='{mode}')")
            form(f"interpolate{n}_{mode}_down", x, f"F.interpolate(x, scale_factor=.7, mode='{mode}')")
            if "linear" in mode or mode == "bicubic":
                how = f"mode='{mode}', align_corners=True"
                form(f"interpolate{n}_{mode}_corners", x, f"F.interpolate(x, scale_factor=1.7, {how})")
    for mode in ("bilinear", "bicubic"):
        how = f"mode='{mode}', antialias=True"
        form(f"interpolate2d_{mode}_antialias", IMAGE, f"F.interpolate(x, scale_factor=.7, {how})")
        form(f"interpolate2d_{mode}_antialias_up", IMAGE, f"F.interpolate(x, scale_factor=1.7, {how})")
    for n, x, grid in (("2d", IMAGE, "8, 56, 56, 2"), ("3d", VOLUME, "2, 16, 28, 28, 3")):
        for mode in ("bilinear", "nearest") + (("bicubic",) if n == "2d" else ()):
            for padding in ("zeros", "border", "reflection"):
                for align in (False, True):
                    how = f"mode='{mode}', padding_mode='{padding}', align_corners={align}"
                    name = f"grid_sample{n}_{mode}_{padding}" + "_corners" * align
                    form(name, f"{x}; g=T.rand({grid})*2.2-1.1", f"F.grid_sample(x, g, {how})")
    form("affine_grid2d", "t=T.randn(8,2,3)", "F.affine_grid(t, [8, 32, 112, 112], align_corners=False)")
    form("affine_grid3d", "t=T.randn(2,3,4)", "F.affine_grid(t, [2, 8, 32, 56, 56], align_corners=False)")
    form("pixel_shuffle", IMAGE, "F.pixel_shuffle(x, 2)")
    form("pixel_shuffle4", IMAGE, "F.pixel_shuffle(x, 4)")
    form("pixel_unshuffle", IMAGE, "F.pixel_unshuffle(x, 2)")
    form("channel_shuffle", IMAGE, "F.channel_shuffle(x, 4)")
    for mode in ("constant", "reflect", "replicate", "circular"):
        for n, x, dims in PLACES:
            form(f"pad{n}_{mode}", x, f"F.pad(x, (2,) * {2 * dims}, mode='{mode}')")
    form("pad3d_cube", "x=T.randn(1, 4, 32, 32, 32)", "F.pad(x, (1,) * 6)")


def norms():
    for n, x, _ in PLACES:
        c = {"1d": 64, "2d": 32, "3d": 16}[n]
        setup = f"{x}; w=T.randn({c}); b=T.randn({c}); m=T.zeros({c}); v=T.ones({c})"
        form(f"batch_norm{n}_train", setup, "F.batch_norm(x, None, None, w, b, True)")
        form(f"batch_norm{n}_eval", setup, "F.batch_norm(x, m, v, w, b, False)")
        form(f"batch_norm{n}_plain", x, "F.batch_norm(x, None, None, None, None, True)")
        form(f"instance_norm{n}", setup, "F.instance_norm(x, weight=w, bias=b)")
        form(f"instance_norm{n}_plain", setup, "F.instance_norm(x)")
        form(f"group_norm{n}", setup, "F.group_norm(x, 8, w, b)")
        form(f"group_norm{n}_one", setup, "F.group_norm(x, 1, w, b)")
        form(f"local_response_norm{n}", x, "F.local_response_norm(x, 5)")
        form(f"dropout{n}", x, f"F.dropout{n}(x, 0.3, True)")


convolutions()
pools()
resampling()
norms()

if __name__ == "__main__":
    main(__doc__)
