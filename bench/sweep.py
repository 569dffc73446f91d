"""bench/sweep.py: every function of torch.nn.functional and its neighbours on a typical shape, forward and backward.

python bench/sweep.py --lib adjoin --save ours.json       one library's times
python bench/sweep.py --beside torch.json ours.json       the ratios, the worst first

It finds what has no fast path yet; the cases with limits are in kernels.py and layers.py, what reads windows in sweep_windows.py.
"""

from sweep_run import IMAGE, VOLUME, form, leaf, main

# ---- norms
ROWS = "x=" + leaf(4096, 512)
NORM = IMAGE + "; w=T.randn(32); b=T.randn(32); m=T.zeros(32); v=T.ones(32)"
form("batch_norm_train", NORM, "F.batch_norm(x, None, None, w, b, True)")
form("batch_norm_eval", NORM, "F.batch_norm(x, m, v, w, b, False)")
form("batch_norm_rows", ROWS + "; w=T.randn(512); b=T.randn(512)", "F.batch_norm(x, None, None, w, b, True)")
form("instance_norm", NORM, "F.instance_norm(x, weight=w, bias=b)")
form("group_norm", NORM, "F.group_norm(x, 8, w, b)")
form("layer_norm", ROWS + "; w=T.randn(512); b=T.randn(512)", "F.layer_norm(x, (512,), w, b)")
form("layer_norm_image", IMAGE, "F.layer_norm(x, (32, 56, 56))")
form("rms_norm", ROWS + "; w=T.randn(512)", "F.rms_norm(x, (512,), w)")
form("local_response_norm", IMAGE, "F.local_response_norm(x, 5)")
form("normalize", ROWS, "F.normalize(x)")
form("normalize_dim0", ROWS, "F.normalize(x, dim=0)")
# ---- activations
for name in """relu relu6 elu selu celu leaky_relu gelu silu mish hardswish hardsigmoid hardtanh softplus softsign
 tanhshrink softshrink hardshrink logsigmoid sigmoid tanh""".split():
    form(name, ROWS, f"F.{name}(x)")
form("prelu", IMAGE + "; w=T.rand(32)", "F.prelu(x, w)")
form("rrelu", ROWS, "F.rrelu(x, training=True)")
form("threshold", ROWS, "F.threshold(x, 0.1, 20.)")
form("glu", ROWS, "F.glu(x)")
form("softmax", ROWS, "F.softmax(x, -1)")
form("softmax_dim1", IMAGE, "F.softmax(x, 1)")
form("log_softmax", ROWS, "F.log_softmax(x, -1)")
form("softmin", ROWS, "F.softmin(x, -1)")
form("gumbel_softmax", ROWS, "F.gumbel_softmax(x)")
for name in ("dropout", "alpha_dropout", "feature_alpha_dropout"):
    form(name, ROWS, f"F.{name}(x, 0.3, True)")
form("dropout2d", IMAGE, "F.dropout2d(x, 0.3, True)")
# ---- losses
PAIR = ROWS + "; y=T.randn(4096, 512)"
for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "poisson_nll_loss"):
    form(name, PAIR + (".sign()" if "margin" in name else ""), f"F.{name}(x, y)")
CLASS = ROWS + "; t=T.arange(4096) % 512"
form("nll_loss", CLASS, "F.nll_loss(x, t)")
form("cross_entropy", CLASS, "F.cross_entropy(x, t)")
form("cross_entropy_smooth", CLASS, "F.cross_entropy(x, t, label_smoothing=.1)")
form("cross_entropy_soft", ROWS + "; p=T.softmax(T.randn(4096,512),-1)", "F.cross_entropy(x, p)")
form("cross_entropy_image", IMAGE + "; t=(T.arange(8*56*56) % 32).reshape(8,56,56)", "F.cross_entropy(x, t)")
form("multi_margin_loss", CLASS, "F.multi_margin_loss(x, t)")
form(
    "multilabel_margin_loss",
    "x=T.randn(256,128); t=T.arange(256*128).reshape(256,128)%128; t[:, 4]=-1",
    "F.multilabel_margin_loss(x, t)",
)
form("multilabel_soft_margin_loss", ROWS + "; p=T.rand(4096,512).round()", "F.multilabel_soft_margin_loss(x, p)")
form("kl_div", ROWS + "; p=T.softmax(T.randn(4096,512),-1)", "F.kl_div(x, p, reduction='batchmean')")
form("bce", "x=T.rand(4096,512); p=T.rand(4096,512).round()", "F.binary_cross_entropy(x, p)")
form("bce_logits", ROWS + "; p=T.rand(4096,512).round()", "F.binary_cross_entropy_with_logits(x, p)")
form("gaussian_nll_loss", PAIR + "; v=T.rand(4096,512)+.1", "F.gaussian_nll_loss(x, y, v)")
form("cosine_similarity", PAIR, "F.cosine_similarity(x, y)")
form("pairwise_distance", PAIR, "F.pairwise_distance(x, y)")
form("cosine_embedding_loss", PAIR + "; s=T.ones(4096)", "F.cosine_embedding_loss(x, y, s)")
form("hinge_embedding_loss", ROWS + "; s=T.randn(4096,512).sign()", "F.hinge_embedding_loss(x, s)")
form("margin_ranking_loss", PAIR + "; s=T.randn(4096,512).sign()", "F.margin_ranking_loss(x, y, s)")
form("triplet_margin_loss", PAIR + "; z=T.randn(4096,512)", "F.triplet_margin_loss(x, y, z)")
form(
    "ctc_loss",
    "x=T.randn(100,16,40); t=T.arange(16*20).reshape(16,20)%39+1",
    "F.ctc_loss(F.log_softmax(x,2), t, (100,)*16, (20,)*16)",
)
form(
    "ctc_loss_small",
    "x=T.randn(20,4,10); t=T.arange(4*5).reshape(4,5)%9+1",
    "F.ctc_loss(F.log_softmax(x,2), t, (20,)*4, (5,)*4)",
)
FEW = "x=T.randn(16,10); t=T.arange(16)%10; s=T.randn(16,10).sign(); m=T.arange(160).reshape(16,10)%10; m[:, 4]=-1"
form("multi_margin_loss_small", FEW, "F.multi_margin_loss(x, t)")
form("multilabel_margin_loss_small", FEW, "F.multilabel_margin_loss(x, m)")
form("multilabel_soft_margin_loss_small", FEW, "F.multilabel_soft_margin_loss(x, (s + 1) / 2)")
form("soft_margin_loss_small", FEW, "F.soft_margin_loss(x, s)")
form("hinge_embedding_loss_small", FEW, "F.hinge_embedding_loss(x, s)")
form("cosine_embedding_loss_small", FEW, "F.cosine_embedding_loss(x, x * 2, s[:, 0])")
form("triplet_margin_loss_small", FEW, "F.triplet_margin_loss(x, x * 2, x + 1)")
# ---- embeddings, attention, recurrent cells
form("embedding", "w=T.randn(30000,256); i=T.arange(4096)*7919%30000", "F.embedding(i, w)")
form("embedding_repeats", "w=T.randn(1000,256); i=T.arange(8192)*7919%1000", "F.embedding(i, w)")
for mode in ("sum", "mean", "max"):
    form(
        f"embedding_bag_{mode}",
        "w=T.randn(30000,64); i=(T.arange(16384)*7919%30000).reshape(1024,16)",
        f"F.embedding_bag(i, w, mode='{mode}')",
    )
form("one_hot", "t=T.arange(16384)%256", "F.one_hot(t, 256)")
form("bilinear", "x=T.randn(256,64); y=T.randn(256,64); w=T.randn(32,64,64)", "F.bilinear(x, y, w)")
form("sdpa_mask", "q=T.randn(4,8,256,64); m=T.rand(256,256)>.3", "F.scaled_dot_product_attention(q, q, q, attn_mask=m)")
form("mha", "x=T.randn(8,128,256); M=T.nn.MultiheadAttention(256,8,batch_first=True)", "M(x,x,x,need_weights=False)[0]")
form("mha_weights", "x=T.randn(8,128,256); M=T.nn.MultiheadAttention(256,8,batch_first=True)", "M(x,x,x)[0]")
form("encoder_layer", "x=T.randn(8,128,256); M=T.nn.TransformerEncoderLayer(256,8,1024,0.,batch_first=True)", "M(x)")
form("lstm_cell", "x=T.randn(64,256); M=T.nn.LSTMCell(256,256)", "M(x)[0]")
form("gru_cell", "x=T.randn(64,256); M=T.nn.GRUCell(256,256)", "M(x)")
form("rnn_cell", "x=T.randn(64,256); M=T.nn.RNNCell(256,256)", "M(x)")
form("rnn", "x=T.randn(50,16,256); M=T.nn.RNN(256,256)", "M(x)[0]")
form("lstm_bi2", "x=T.randn(30,16,128); M=T.nn.LSTM(128,128,2,bidirectional=True)", "M(x)[0]")
form("gru", "x=T.randn(50,16,256); M=T.nn.GRU(256,256)", "M(x)[0]")
# ---- scans, order, search
SQUARE = "x=" + leaf(1000, 1000)
for name in ("cumsum", "cumprod", "logcumsumexp"):
    form(name, SQUARE, f"T.{name}(x, 1)")
    form(f"{name}_dim0", SQUARE, f"T.{name}(x, 0)")
form("cummax", SQUARE, "T.cummax(x, 1)[0]")
form("cummin_dim0", SQUARE, "T.cummin(x, 0)[0]")
form("logsumexp", SQUARE, "T.logsumexp(x, 1)")
form("logsumexp_dim0", SQUARE, "T.logsumexp(x, 0)")
form("diff", SQUARE, "T.diff(x)")
form("trapz", SQUARE, "T.trapz(x)")
form("sort", SQUARE, "T.sort(x, 1)[0]")
form("sort_dim0", SQUARE, "T.sort(x, 0)[0]")
form("sort_int", "x=T.arange(1000000)*7919%1000003", "T.sort(x)[0]")
form("argsort", SQUARE, "T.argsort(x, 1)")
form("topk", SQUARE, "T.topk(x, 10, 1)[0]")
form("topk_dim0", SQUARE, "T.topk(x, 10, 0)[0]")
form("topk_large", "x=T.randn(1000000)", "T.topk(x, 1000)[0]")
form("kthvalue", SQUARE, "T.kthvalue(x, 500, 1)[0]")
form("median", SQUARE, "T.median(x, 1)[0]")
form("median_all", SQUARE, "T.median(x)")
form("nanmedian", SQUARE, "T.nanmedian(x, 1)[0]")
form("mode", "x=(T.arange(1000000)*7919%100).reshape(1000,1000)", "T.mode(x, 1)[0]")
form("quantile", SQUARE, "T.quantile(x, .7, 1)")
form("unique", "x=T.arange(1000000)*7919%5003", "T.unique(x)")
form("unique_inverse", "x=T.arange(1000000)*7919%5003", "T.unique(x, return_inverse=True, return_counts=True)[0]")
form("unique_float", "x=T.randn(100000)", "T.unique(x)")
form("unique_dim", "x=T.arange(30000).reshape(10000,3)*7919%11", "T.unique(x, dim=0)")
form("unique_consecutive", "x=T.arange(1000000)//7", "T.unique_consecutive(x)")
form("searchsorted", "s=T.arange(10000)*1.; x=T.rand(1000000)*10000", "T.searchsorted(s, x)")
form("bucketize", "s=T.arange(100)*1.; x=T.rand(1000000)*100", "T.bucketize(x, s)")
form("histc", SQUARE, "T.histc(x, 100)")
form("histogram", "x=T.randn(100000)", "T.histogram(x, 100)[0]")
form("bincount", "x=T.arange(1000000)*7919%1000", "T.bincount(x)")
form("bincount_weights", "x=T.arange(1000000)*7919%1000; w=T.rand(1000000)", "T.bincount(x, w)")
form("isin", "x=T.arange(1000000)*7919%5003; y=T.arange(100)*3", "T.isin(x, y)")
form("nonzero", "x=T.randn(1000,1000)>.5", "T.nonzero(x)")
form("count_nonzero", "x=T.randn(1000,1000)>.5", "T.count_nonzero(x)")
# ---- indexing
INDEX = SQUARE + "; i=T.arange(1000000).reshape(1000,1000)*7919%1000; y=T.randn(1000,1000)"
form("gather", INDEX, "T.gather(x, 1, i)")
form("gather_dim0", INDEX, "T.gather(x, 0, i)")
form("scatter", INDEX, "T.scatter(x, 1, i, y)")
form("scatter_dim0", INDEX, "T.scatter(x, 0, i, y)")
form("scatter_add", INDEX, "T.scatter_add(x, 1, i, y)")
form("scatter_add_dim0", INDEX, "T.scatter_add(x, 0, i, y)")
for how in ("sum", "prod", "mean", "amax", "amin"):
    form(f"scatter_reduce_{how}", INDEX, f"T.scatter_reduce(x, 1, i, y, '{how}')")
form("scatter_reduce_dim0", INDEX, "T.scatter_reduce(x, 0, i, y, 'amax')")
form("take_along_dim", INDEX, "T.take_along_dim(x, i, 1)")
form("take", INDEX, "T.take(x, i)")
ROWSI = SQUARE + "; i=T.arange(1000)*791%1000; y=T.randn(1000,1000)"
form("index_select", ROWSI, "T.index_select(x, 0, i)")
form("index_select_dim1", ROWSI, "T.index_select(x, 1, i)")
form("index_add", ROWSI, "T.index_add(x, 0, i, y)")
form("index_add_dim1", ROWSI, "T.index_add(x, 1, i, y)")
form("index_copy", ROWSI, "T.index_copy(x, 0, i, y)")
form("index_fill", ROWSI, "T.index_fill(x, 0, i, 2.)")
form("index_reduce", ROWSI, "T.index_reduce(x, 0, i, y, 'amax')")
form("index_rows", ROWSI, "x[i]")
form("index_columns", ROWSI, "x[:, i]")
form("index_pairs", SQUARE + "; i=T.arange(100000)*791%1000; j=T.arange(100000)*7919%1000", "x[i, j]")
form("index_grid", ROWSI, "x[i[:, None], i[None]]")
POINTS = "x=T.randn(1000,1000); i=T.arange(100000)*791%1000; j=T.arange(100000)*7919%1000; y=T.randn(100000)"
form("index_put", POINTS, "T.index_put(x, (i, j), y)")
form("index_put_accumulate", POINTS, "T.index_put(x, (i, j), y, True)")
form("index_put_accumulate_rows", ROWSI, "T.index_put(x, (i,), y, True)")
MASK = SQUARE + "; m=T.randn(1000,1000)>0; y=T.randn(1000,1000)"
form("masked_fill", MASK, "T.masked_fill(x, m, 2.)")
form("masked_fill_rows", SQUARE + "; m=T.randn(1000)>0", "T.masked_fill(x, m, 2.)")
form("masked_select", MASK, "T.masked_select(x, m)")
form("masked_scatter", MASK, "T.masked_scatter(x, m, y)")
form("index_mask", MASK, "x[m]")
form("where_scalar", MASK, "T.where(m, x, 0.)")
# ---- shapes
form("roll", SQUARE, "T.roll(x, 37, 1)")
form("roll2", SQUARE, "T.roll(x, (3, 5), (0, 1))")
form("flip", SQUARE, "T.flip(x, (1,))")
form("flip0", SQUARE, "T.flip(x, (0,))")
form("rot90", SQUARE, "T.rot90(x)")
form("tril", SQUARE, "T.tril(x)")
form("triu", SQUARE, "T.triu(x)")
form("tril_indices", "", "T.tril_indices(1000, 1000)")
form("diag", "x=T.randn(1000)", "T.diag(x)")
form("diag_embed", "x=T.randn(64,128)", "T.diag_embed(x)")
form("diagonal_scatter", SQUARE + "; y=T.randn(1000)", "T.diagonal_scatter(x, y)")
form("meshgrid", "x=T.randn(1000)", "T.meshgrid(x, x, indexing='ij')[0].contiguous()")
form("cartesian_prod", "x=T.randn(500)", "T.cartesian_prod(x, x)")
form("combinations", "x=T.randn(500)", "T.combinations(x)")
form("repeat", "x=T.randn(100,100)", "x.repeat(10, 10)")
form("repeat_interleave", "x=T.randn(1000,100)", "T.repeat_interleave(x, 10, 1)")
form("repeat_interleave0", "x=T.randn(1000,100)", "T.repeat_interleave(x, 10, 0)")
form("repeat_interleave_counts", "x=T.randn(1000,100); c=T.arange(1000)%20", "T.repeat_interleave(x, c, 0)")
form("tile", "x=T.randn(100,100)", "T.tile(x, (10, 10))")
form("stack", SQUARE, "T.stack([x, x, x], 1)")
form("stack_last", SQUARE, "T.stack([x, x], 2)")
form("block_diag", "x=T.randn(300,300)", "T.block_diag(x, x, x)")
form("block_diag_small", "x=T.randn(8,8)", "T.block_diag(x, x, x)")
form("kron_small", "x=T.randn(4,4); y=T.randn(4,4)", "T.kron(x, y)")
form("kron", "x=T.randn(32,32); y=T.randn(32,32)", "T.kron(x, y)")
form("vander", "x=T.rand(1000)", "T.vander(x, 100)")
form("movedim", VOLUME, "T.movedim(x, 1, 4).contiguous()")
form("cross", "x=T.randn(100000,3); y=T.randn(100000,3)", "T.linalg.cross(x, y)")
form("cross_small", "x=T.randn(10,3); y=T.randn(10,3)", "T.linalg.cross(x, y)")
form("cross_dim0", "x=T.randn(3,100000); y=T.randn(3,100000)", "T.linalg.cross(x, y, dim=0)")
form("untyped_storage", "x=T.randn(1000)", "x.untyped_storage()")
form("untyped_storage_bytes", "x=T.randn(1000)", "x.untyped_storage().nbytes()")
form("linspace", "", "T.linspace(0, 1, 1000000)")
form("arange", "", "T.arange(1000000)")
form("eye", "", "T.eye(1000)")
# ---- products and distances
form("einsum_bij", "x=T.randn(32,64,64); y=T.randn(32,64,64)", "T.einsum('bij,bjk->bik', x, y)")
form("einsum_attention", "x=T.randn(8,128,8,32); y=T.randn(8,128,8,32)", "T.einsum('bqhd,bkhd->bhqk', x, y)")
form("einsum_outer", "x=T.randn(1000); y=T.randn(1000)", "T.einsum('i,j->ij', x, y)")
form("einsum_trace", SQUARE, "T.einsum('ii->', x)")
form("einsum_weighted", PAIR, "T.einsum('ij,ij->i', x, y)")
form("einsum_three", "x=T.randn(200,200); y=T.randn(200,200); z=T.randn(200,200)", "T.einsum('ij,jk,kl->il', x, y, z)")
form("tensordot", "x=T.randn(32,64,64); y=T.randn(64,64,32)", "T.tensordot(x, y, 2)")
form("baddbmm", "c=T.randn(32,64,64); x=T.randn(32,64,64); y=T.randn(32,64,64)", "T.baddbmm(c, x, y)")
form("addmm", "c=T.randn(256); x=T.randn(256,256); y=T.randn(256,256)", "T.addmm(c, x, y)")
form("addbmm", "c=T.randn(64,64); x=T.randn(32,64,64); y=T.randn(32,64,64)", "T.addbmm(c, x, y)")
form("addmv", "c=T.randn(1000); x=T.randn(1000,1000); y=T.randn(1000)", "T.addmv(c, x, y)")
form("mv", "x=T.randn(1000,1000); y=T.randn(1000)", "T.mv(x, y)")
form("outer", "x=T.randn(1000); y=T.randn(1000)", "T.outer(x, y)")
form("addr", SQUARE + "; u=T.randn(1000)", "T.addr(x, u, u)")
form("dot", "x=T.randn(100000); y=T.randn(100000)", "T.dot(x, y)")
form("matmul_int", "x=T.arange(40000).reshape(200,200)%7", "x @ x")
form("cdist", "x=T.randn(500,64); y=T.randn(500,64)", "T.cdist(x, y)")
form("cdist_p1", "x=T.randn(500,64); y=T.randn(500,64)", "T.cdist(x, y, p=1.)")
form("pdist", "x=T.randn(500,64)", "F.pdist(x)")
form("matrix_power", "x=T.randn(200,200)*.05", "T.matrix_power(x, 5)")
form("multi_dot", "x=T.randn(200,200)", "T.linalg.multi_dot([x, x, x])")
# ---- reductions and pointwise
for name in ("std", "var", "prod", "amax", "argmin", "norm", "nansum", "nanmean", "std_mean", "aminmax"):
    tail = "[0]" if name in ("std_mean",) else ".max" if name == "aminmax" else ""
    form(name, SQUARE, f"T.{name}(x, dim=1){tail}")
    if name != "aminmax":
        form(f"{name}_dim0", SQUARE, f"T.{name}(x, dim=0){tail}")
for name in ("var", "std", "sum", "prod", "amax"):
    form(f"{name}_columns", "x=T.randn(1000,1000)[:, ::2]", f"T.{name}(x, dim=0)")
form("sum_middle", "x=T.randn(100,100,100)", "T.sum(x, 1)")
form("mean_outer", "x=T.randn(100,100,100)", "T.mean(x, (0, 2))")
form("sum_bool", "x=T.randn(1000,1000)>0", "T.sum(x)")
form("all", "x=T.randn(1000,1000)<9", "T.all(x)")
form("equal", PAIR, "T.equal(x, y)")
form("allclose", "x=T.randn(1000,1000); y=x+0", "T.allclose(x, y)")
UNARY = """abs neg exp expm1 exp2 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh asinh
 acosh atanh erf erfc erfinv lgamma digamma i0 floor ceil round trunc frac sign sgn signbit square sinc logit
 nan_to_num isnan isfinite isinf""".split()
for name in UNARY:
    form(name, "x=T.rand(1000,1000)*.8+.1" if name != "acosh" else "x=T.rand(1000,1000)+1.1", f"T.{name}(x)")
for name in """add mul div pow atan2 fmod remainder floor_divide maximum minimum fmax hypot copysign logaddexp xlogy
 nextafter gt eq logical_and float_power ldexp heaviside""".split():
    form(name, "x=T.rand(1000,1000)+.1; y=T.rand(1000,1000)+.1", f"T.{name}(x, y)")
form("clamp", SQUARE, "T.clamp(x, -1, 1)")
form("lerp", "x=T.randn(1000,1000); y=T.randn(1000,1000)", "T.lerp(x, y, .3)")
form("addcmul", "x=T.randn(1000,1000); y=T.randn(1000,1000)", "T.addcmul(x, y, y)")
form("polygamma", "x=T.rand(1000,100)+.5", "T.polygamma(1, x)")
form("polygamma2", "x=T.rand(1000,100)+.5", "T.polygamma(2, x)")
form("bitwise_and", "x=T.arange(1000000); y=T.arange(1000000)+3", "x & y")
form("int_div", "x=T.arange(1000000); y=T.arange(1000000)%7+3", "x // y")
form("complex_mul", "x=T.randn(500,1000,dtype=T.complex64); y=T.randn(500,1000,dtype=T.complex64)", "x * y")
form("multinomial", "x=T.rand(64,1000)", "T.multinomial(x, 100, True)")
form("multinomial_once", "x=T.rand(64,1000)", "T.multinomial(x, 100)")
form("bernoulli", "x=T.rand(1000,1000)", "T.bernoulli(x)")
form("randperm", "", "T.randperm(1000000)")
form("randint", "", "T.randint(0, 100, (1000000,))")
form("normal", "x=T.rand(1000,1000)", "T.normal(x, 1.)")
form("exponential", "x=T.rand(1000,1000)", "x.exponential_()")

if __name__ == "__main__":
    main(__doc__)
