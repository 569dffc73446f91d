"""tests/compat/beside_nn_test.py: layers beside PyTorch's: text, state dicts, outputs,
gradients."""

import pytest

torch = pytest.importorskip("torch")

import adjoin
from beside import copy_weights, near, ours

IMAGE, LINE, ROWS, VOLUME = (3, 2, 6, 6), (3, 2, 6), (5, 6), (3, 2, 4, 4, 4)
LAYERS = [
    ("Linear(6, 4)", ROWS),
    ("Linear(6, 4, bias=False)", LINE),
    ("Identity()", ROWS),
    ("Flatten()", IMAGE),
    ("Unflatten(1, (2, 3))", ROWS),
    ("Conv1d(2, 4, 3, padding=1)", LINE),
    ("Conv2d(2, 4, (3, 2), stride=2, dilation=2, groups=2, bias=False)", IMAGE),
    ("Conv2d(2, 4, 4, padding='same')", IMAGE),
    ("Conv2d(2, 4, 3, padding=1, padding_mode='circular')", IMAGE),
    ("Conv2d(2, 4, 3, padding=(1, 2), padding_mode='reflect')", IMAGE),
    ("ConvTranspose2d(2, 4, 3, stride=2, output_padding=1)", IMAGE),
    ("MaxPool2d(3, 2, 1, ceil_mode=True)", IMAGE),
    ("AvgPool2d(3, 2, 1, count_include_pad=False)", IMAGE),
    ("AdaptiveAvgPool2d((2, None))", IMAGE),
    ("MaxPool1d(2)", LINE),
    ("AvgPool1d(2)", LINE),
    ("BatchNorm2d(2)", IMAGE),
    ("BatchNorm2d(2, momentum=None)", IMAGE),
    ("BatchNorm1d(2, affine=False, track_running_stats=False)", LINE),
    ("LayerNorm(6)", IMAGE),
    ("LayerNorm((6, 6), elementwise_affine=False)", IMAGE),
    ("GroupNorm(2, 2)", IMAGE),
    ("InstanceNorm2d(2, affine=True, track_running_stats=True)", IMAGE),
    ("RMSNorm(6)", IMAGE),
    ("ZeroPad2d((1, 2, 3, 4))", IMAGE),
    ("ConstantPad2d(1, 3.5)", IMAGE),
    ("ReflectionPad2d(1)", IMAGE),
    ("ReplicationPad2d(2)", IMAGE),
    ("CircularPad2d(1)", IMAGE),
    ("MaxPool3d(2, padding=1)", VOLUME),
    ("AvgPool3d(2)", VOLUME),
    ("AdaptiveAvgPool3d(2)", VOLUME),
    ("AdaptiveMaxPool1d(3)", LINE),
    ("AdaptiveMaxPool2d((2, None))", IMAGE),
    ("AdaptiveMaxPool3d(2)", VOLUME),
    ("LPPool1d(2, 2)", LINE),
    ("LPPool2d(2, 2)", IMAGE),
    ("LPPool3d(2, 2)", VOLUME),
    ("Conv3d(2, 4, 3, padding=1)", VOLUME),
    ("ConvTranspose3d(2, 4, 3, stride=2)", VOLUME),
    ("ConvTranspose1d(2, 4, 3, stride=2)", LINE),
    ("Unfold(2, padding=1)", IMAGE),
    ("Fold((4, 3), (2, 2))", (3, 8, 6)),
    ("Upsample(scale_factor=2)", IMAGE),
    ("Upsample(size=(3, 9), mode='bilinear')", IMAGE),
    ("UpsamplingNearest2d(size=(4, 4))", IMAGE),
    ("UpsamplingBilinear2d(scale_factor=2)", IMAGE),
    ("PixelShuffle(2)", (3, 4, 3, 3)),
    ("PixelUnshuffle(2)", IMAGE),
    ("ChannelShuffle(2)", (3, 4, 3, 3)),
    ("LocalResponseNorm(2)", IMAGE),
    ("SyncBatchNorm(2)", IMAGE),
    ("ReflectionPad3d(1)", VOLUME),
    ("ReplicationPad3d(1)", VOLUME),
    ("CircularPad3d(1)", VOLUME),
    ("ZeroPad3d(1)", VOLUME),
    ("ConstantPad3d(1, 2.0)", VOLUME),
    ("utils.parametrizations.weight_norm(Linear(6, 4))", ROWS),
    ("utils.parametrizations.spectral_norm(Conv2d(2, 4, 3))", IMAGE),
    ("utils.parametrizations.orthogonal(Linear(6, 4), use_trivialization=False)", ROWS),
    ("utils.weight_norm(Linear(6, 4))", ROWS),
    ("utils.spectral_norm(Linear(6, 4))", ROWS),
    ("Softmax(dim=1)", ROWS),
    ("LogSoftmax(dim=1)", ROWS),
    ("GELU('tanh')", ROWS),
    ("PReLU(2)", IMAGE),
    ("Threshold(0.1, 0.2)", ROWS),
    ("Hardtanh(-2, 2)", ROWS),
    *((f"{name}()", ROWS) for name in (
        "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Sigmoid", "Tanh",
        "Softplus", "Mish", "LogSigmoid", "PReLU", "Hardswish", "Hardsigmoid", "Hardshrink",
        "Softshrink", "Softsign", "Tanhshrink", "GLU",
    )),
]  # fmt: skip


def pair(text):
    """The same layer from both libraries, with the same weights."""
    mine, other = (eval(text, {**vars(nn)}) for nn in (adjoin.nn, torch.nn))
    copy_weights(other, mine)
    return mine, other


@pytest.mark.parametrize("text, shape", LAYERS, ids=[text for text, _ in LAYERS])
def test_layer(text, shape):
    torch.manual_seed(0)
    mine, other = pair(text)
    assert repr(mine) == repr(other)
    assert mine.state_dict()._metadata == other.state_dict()._metadata
    for training in (True, False):
        mine.train(training), other.train(training)
        x = torch.randn(shape, requires_grad=True)
        y = ours(x).requires_grad_()
        a, b = mine(y), other(x)
        near(a, b, 2e-5)
        g = torch.randn(b.shape)
        a.backward(ours(g)), b.backward(g)
        near(y.grad, x.grad, 1e-4)
    for p, q in zip(mine.parameters(), other.parameters(), strict=True):
        near(p.grad, q.grad, 1e-4)
    for p, q in zip(mine.buffers(), other.buffers(), strict=True):
        near(p, q)


LAZY = [
    ("LazyLinear(3)", ROWS),
    ("LazyConv2d(4, 3, padding=1)", IMAGE),
    ("LazyConvTranspose1d(4, 3)", LINE),
    ("LazyBatchNorm2d()", IMAGE),
    ("LazyInstanceNorm1d()", LINE),
]


@pytest.mark.parametrize("text, shape", LAZY)
def test_lazy_layer(text, shape):
    torch.manual_seed(0)
    mine, other = (eval(text, {**vars(nn)}) for nn in (adjoin.nn, torch.nn))
    fresh = eval(text, {**vars(adjoin.nn)})
    assert repr(mine) == repr(other) and list(mine.state_dict()) == list(other.state_dict())
    x = torch.randn(shape)
    other(x), mine(ours(x))
    assert repr(mine) == repr(other)
    for net in (mine, fresh):  # one that has seen an input, and one that has not
        copy_weights(other, net)
        near(net(ours(x)), other(x), 1e-5)


LOSSES = [
    ("MSELoss()", "real"),
    ("PoissonNLLLoss(full=True)", "share"),
    ("HingeEmbeddingLoss(margin=0.5)", "sign"),
    ("SoftMarginLoss()", "sign"),
    ("MultiLabelSoftMarginLoss(reduction='sum')", "share"),
    ("L1Loss(reduction='sum')", "real"),
    ("SmoothL1Loss(beta=0.3)", "real"),
    ("HuberLoss(delta=0.2)", "real"),
    ("BCELoss()", "share"),
    ("BCEWithLogitsLoss(reduction='none')", "share"),
    ("KLDivLoss(reduction='batchmean')", "share"),
    ("CrossEntropyLoss(label_smoothing=0.1)", "class"),
    ("CrossEntropyLoss()", "share"),
    ("NLLLoss(reduction='sum')", "class"),
]


@pytest.mark.parametrize("text, kind", LOSSES)
def test_loss(text, kind):
    torch.manual_seed(0)
    mine, other = (eval(text, {**vars(nn)}) for nn in (adjoin.nn, torch.nn))
    assert repr(mine) == repr(other)
    x = torch.rand(6, 4) if "BCELoss" in text else torch.randn(6, 4)
    x.requires_grad_()
    y = {
        "real": torch.randn(6, 4),
        "share": torch.rand(6, 4),
        "class": torch.tensor([0, 3, -100, 1, 2, 2]),
        "sign": torch.randn(6, 4).sign(),
    }[kind]
    z = ours(x).requires_grad_()
    a, b = mine(z, ours(y)), other(x, y)
    near(a, b)
    a.sum().backward(), b.sum().backward()
    near(z.grad, x.grad)


TRANSFORMERS = [{}, {"batch_first": True}, {"norm_first": True, "activation": "gelu"}, {"bias": False}]


@pytest.mark.parametrize("settings", TRANSFORMERS, ids=str)
def test_transformer(settings):
    torch.manual_seed(0)
    nets = [nn.Transformer(8, 2, 2, 2, 16, dropout=0.0, **settings) for nn in (adjoin.nn, torch.nn)]
    mine, other = nets
    assert repr(mine) == repr(other)
    copy_weights(other, mine)
    first = (3, 5, 8) if settings.get("batch_first") else (5, 3, 8)
    src, tgt = torch.randn(first), torch.randn(first)
    padding = torch.tensor([[False, False, False, True, True]] * 3)
    causal = [net.generate_square_subsequent_mask(5) for net in nets]
    near(causal[0], causal[1])
    for how in ({}, {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}):
        x, y = src.clone().requires_grad_(), ours(src).requires_grad_()
        a = mine(y, ours(tgt), tgt_mask=causal[0], **{k: ours(v) for k, v in how.items()})
        b = other(x, tgt, tgt_mask=causal[1], **how)
        near(a, b, 2e-5)
        g = torch.randn(b.shape)
        a.backward(ours(g)), b.backward(g)
        near(y.grad, x.grad, 1e-4)


def test_adaptive_softmax():
    torch.manual_seed(0)
    mine, other = (nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10], div_value=2.0)
                   for nn in (adjoin.nn, torch.nn))  # fmt: skip
    assert repr(mine) == repr(other)
    copy_weights(other, mine)
    x, target = torch.randn(6, 16, requires_grad=True), torch.tensor([0, 19, 5, 3, 11, 4])
    y = ours(x).requires_grad_()
    a, b = mine(y, ours(target)), other(x, target)
    near(a.output, b.output), near(a.loss, b.loss)
    a.loss.backward(), b.loss.backward()
    near(y.grad, x.grad)
    near(mine.log_prob(y), other.log_prob(x)), near(mine.predict(y), other.predict(x))


@pytest.mark.parametrize("settings", [{}, {"batch_first": True}, {"kdim": 6, "vdim": 5},
                                      {"add_bias_kv": True, "add_zero_attn": True}])  # fmt: skip
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention(settings, need_weights):
    torch.manual_seed(0)
    other = torch.nn.MultiheadAttention(8, 2, **settings)
    mine = adjoin.nn.MultiheadAttention(8, 2, **settings)
    copy_weights(other, mine)
    q, k = torch.randn(3, 3, 8), torch.randn(3, 3, settings.get("kdim", 8))
    v = torch.randn(3, 3, settings.get("vdim", 8))
    padding = torch.tensor([[False, False, True]] * 3)
    a, wa = mine(*map(ours, (q, k, v)), key_padding_mask=ours(padding), need_weights=need_weights)
    b, wb = other(q, k, v, key_padding_mask=padding, need_weights=need_weights)
    near(a, b)
    assert (wa is None) == (wb is None) and (wa is None or near(wa, wb) is None)


def test_state_dict_messages_agree():
    texts = []
    for nn, ones in ((adjoin.nn, adjoin.ones), (torch.nn, torch.ones)):
        net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        with pytest.raises(RuntimeError) as caught:
            net.load_state_dict({"0.weight": ones(2, 2), "1.what": ones(1), "x": ones(1)})
        texts.append(str(caught.value).replace(str(ones(2, 2).shape), "S").replace(
            str(ones(3, 2).shape), "T"))  # fmt: skip
    assert texts[0] == texts[1]


def hook_log(lib):
    log = []
    net = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Tanh())
    for name, module in net.named_modules():
        module.register_forward_pre_hook(lambda m, x, n=name: log.append(("pre", n)))
        module.register_forward_hook(lambda m, x, y, n=name: log.append(("post", n)))
        module.register_full_backward_pre_hook(lambda m, g, n=name: log.append(("bpre", n)))
        module.register_full_backward_hook(lambda m, i, o, n=name: log.append(("back", n)))
    net(lib.ones(2, 2, requires_grad=True)).sum().backward()
    return log


def test_hooks_run_in_the_same_order():
    assert hook_log(adjoin) == hook_log(torch)
