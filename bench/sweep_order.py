"""bench/sweep_order.py: sorting, counting, bags and writing by indices, of few and many elements, short and long rows.

Options as sweep.py's.
"""

from sweep_run import form, main

SHAPES = (("1e3", "1000"), ("10x100", "10,100"), ("1e6", "1000000"), ("by8", "125000,8"), ("by4096", "244,4096"))


def rows(tag, shape):
    """What works along the last dimension."""
    last = shape.split(",")[-1]
    x = f"x=T.randn({shape})"
    for name, call in (
        ("sort", "T.sort(x, -1)[0]"),
        ("argsort", "T.argsort(x, -1)"),
        ("topk3", "T.topk(x, 3, -1)[0]"),
        ("kthvalue", f"T.kthvalue(x, {last} // 2, -1)[0]"),
        ("median", "T.median(x, -1)[0]"),
        ("cummax", "T.cummax(x, -1)[0]"),
        ("roll", "T.roll(x, 3, -1)"),
        ("flip", "T.flip(x, (-1,))"),
        ("max", "T.max(x, -1)[0]"),
        ("argmax", "T.argmax(x, -1)"),
    ):
        form(f"{name}_{tag}", x, call)
    form(f"mode_{tag}", f"x=T.randint(0, 100, ({shape},))", "T.mode(x, -1)[0]")
    form(f"mode_float_{tag}", f"x=T.randint(0, 100, ({shape},)).float()", "T.mode(x, -1)[0]")
    at = f"{x}; i=T.randint(0, {last}, ({shape},)); y=T.randn({shape})"
    form(f"take_along_dim_{tag}", at, "T.take_along_dim(x, i, -1)")
    form(f"gather_{tag}", at, "T.gather(x, -1, i)")
    form(f"scatter_{tag}", at, "T.scatter(x, -1, i, y)")
    form(f"scatter_add_{tag}", at, "T.scatter_add(x, -1, i, y)")
    for how in ("sum", "mean", "amax", "prod"):
        form(f"scatter_reduce_{how}_{tag}", at, f"T.scatter_reduce(x, -1, i, y, '{how}')")
    form(f"searchsorted_{tag}", f"s=T.sort(T.randn({shape}), -1)[0]; {x}", "T.searchsorted(s, x)")


def elements(tag, shape):
    """What counts, finds or writes single elements."""
    ints = f"x=T.randint(0, 1000, ({shape},))"
    form(f"unique_{tag}", ints, "T.unique(x)")
    form(f"unique_counts_{tag}", ints, "T.unique(x, return_counts=True)[1]")
    form(f"unique_both_{tag}", ints, "T.unique(x, return_inverse=True, return_counts=True)[1]")
    form(f"unique_float_{tag}", f"x=T.randn({shape}).double()", "T.unique(x)")
    form(f"bucketize_{tag}", f"s=T.arange(100)*.1-5; x=T.randn({shape})", "T.bucketize(x, s)")
    form(f"histc_{tag}", f"x=T.randn({shape})", "T.histc(x, 64)")
    form(f"histc_range_{tag}", f"x=T.randn({shape})", "T.histc(x, 64, -2, 2)")
    form(f"isin_{tag}", ints + "; y=T.arange(0, 1000, 7)", "T.isin(x, y)")
    mask = f"x=T.randn({shape}); m=T.randn({shape})>0; y=T.randn({shape})"
    form(f"masked_scatter_{tag}", mask, "T.masked_scatter(x, m, y)")
    form(f"masked_select_{tag}", mask, "T.masked_select(x, m)")
    form(f"masked_fill_{tag}", mask, "T.masked_fill(x, m, 2.)")
    form(f"nonzero_{tag}", mask, "T.nonzero(m)")


def flat(tag, n):
    form(f"bincount_{tag}", f"x=T.randint(0, 1000, ({n},))", "T.bincount(x)")
    form(f"bincount_weights_{tag}", f"x=T.randint(0, 1000, ({n},)); w=T.rand({n}).double()", "T.bincount(x, w)")
    put = f"x=T.randn({n}); i=T.randint(0, {n}, ({n},)); y=T.randn({n})"
    form(f"index_put_{tag}", put, "T.index_put(x, (i,), y)")
    form(f"index_put_accumulate_{tag}", put, "T.index_put(x, (i,), y, True)")
    form(f"index_add_{tag}", put, "T.index_add(x, 0, i, y)")
    form(f"take_{tag}", put, "T.take(x, i)")
    form(f"put_{tag}", put, "T.put(x, i, y, True)")
    form(f"repeat_interleave_{tag}", f"x=T.randn({n})", "T.repeat_interleave(x, 3)")
    form(f"repeat_interleave_counts_{tag}", f"x=T.randn({n}); c=T.randint(0, 4, ({n},))", "T.repeat_interleave(x, c)")


def by_rows(tag, n, width):
    put = f"x=T.randn({n}, {width}); i=T.randint(0, {n}, ({n},)); y=T.randn({n}, {width})"
    form(f"index_put_{tag}", put, "T.index_put(x, (i,), y)")
    form(f"index_put_accumulate_{tag}", put, "T.index_put(x, (i,), y, True)")
    form(f"index_add_{tag}", put, "T.index_add(x, 0, i, y)")
    form(f"index_select_{tag}", put, "T.index_select(x, 0, i)")
    form(f"repeat_interleave_{tag}", put, "T.repeat_interleave(x, 3, 0)")
    form(f"repeat_interleave_last_{tag}", put, "T.repeat_interleave(x, 3, 1)")
    form(f"repeat_interleave_counts_{tag}", put + f"; c=T.randint(0, 4, ({n},))", "T.repeat_interleave(x, c, 0)")


def bags(tag, bag, width):
    table = f"w=T.randn(30000, {width}); i=T.randint(0, 30000, (1024 * {bag},)); o=T.arange(1024) * {bag}"
    for mode in ("sum", "mean", "max"):
        form(f"bag_{mode}_{tag}", table, f"F.embedding_bag(i, w, o, mode='{mode}')")
        form(f"bag_{mode}_padding_{tag}", table, f"F.embedding_bag(i, w, o, mode='{mode}', padding_idx=3)")
    form(
        f"bag_weighted_{tag}",
        f"{table}; p=T.rand(1024 * {bag})",
        "F.embedding_bag(i, w, o, mode='sum', per_sample_weights=p)",
    )
    half = table.replace(")", ").bfloat16()", 1)
    for mode in ("sum", "max"):
        form(f"bag_{mode}_bfloat16_{tag}", half, f"F.embedding_bag(i, w, o, mode='{mode}')")
    form(f"bag_matrix_{tag}", f"{table}; i=i.reshape(1024, {bag})", "F.embedding_bag(i, w, mode='sum')")


for tag, shape in SHAPES:
    rows(tag, shape)
    elements(tag, shape)
flat("1e3", 1000)
flat("1e6", 1000000)
by_rows("by8", 125000, 8)
by_rows("by4096", 244, 4096)
bags("8x16", 8, 16)
bags("16x64", 16, 64)
bags("50x300", 50, 300)

if __name__ == "__main__":
    main(__doc__)
