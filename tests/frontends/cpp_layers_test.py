"""tests/frontends/cpp_layers_test.py: every layer of the C++ frontend against the same layer in Python: one seed, the same
initial values, results and gradients."""

from pathlib import Path

import adjoin
import pytest
from adjoin import nn, optim, safetensors
from building import build, run

T = adjoin
WEIGHTED = {
    "linear": ((3, 5), lambda: nn.Linear(5, 4)),
    "linear_no_bias": ((3, 5), lambda: nn.Linear(5, 4, bias=False)),
    "conv1d": ((2, 4, 9), lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2)),
    "conv2d": ((2, 3, 8, 7), lambda: nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=2)),
    "conv2d_same": ((2, 3, 8, 7), lambda: nn.Conv2d(3, 4, 4, padding="same")),
    "conv2d_reflect": ((2, 3, 8, 7), lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")),
    "conv3d": ((1, 2, 4, 5, 6), lambda: nn.Conv3d(2, 3, 3, padding=1)),
    "convt1d": ((2, 4, 5), lambda: nn.ConvTranspose1d(4, 3, 3, stride=2)),
    "convt2d": ((2, 4, 5, 3), lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)),
    "convt3d": ((1, 2, 3, 3, 3), lambda: nn.ConvTranspose3d(2, 2, 2)),
    "batchnorm1d": ((6, 4), lambda: nn.BatchNorm1d(4)),
    "batchnorm2d": ((3, 4, 5, 5), lambda: nn.BatchNorm2d(4, momentum=None)),
    "batchnorm3d": ((2, 3, 2, 3, 4), lambda: nn.BatchNorm3d(3)),
    "instancenorm2d": ((2, 3, 4, 4), lambda: nn.InstanceNorm2d(3, affine=True)),
    "layernorm": ((4, 3, 5), lambda: nn.LayerNorm((3, 5))),
    "groupnorm": ((2, 6, 3), lambda: nn.GroupNorm(3, 6)),
    "rmsnorm": ((4, 5), lambda: nn.RMSNorm(5)),
    "prelu": ((2, 3, 4), lambda: nn.PReLU(3)),
    "sequential": ((5, 6), lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))),
    "encoder": ((5, 2, 8), lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2)),
    "encoder_norm_first": (
        (2, 5, 8),
        lambda: nn.TransformerEncoderLayer(8, 4, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True),
    ),
}
IN = (4, 6)
PLAIN = {
    "relu": (IN, nn.ReLU), "relu6": (IN, nn.ReLU6), "selu": (IN, nn.SELU), "silu": (IN, nn.SiLU), "mish": (IN, nn.Mish),
    "hardswish": (IN, nn.Hardswish), "hardsigmoid": (IN, nn.Hardsigmoid), "logsigmoid": (IN, nn.LogSigmoid),
    "sigmoid": (IN, nn.Sigmoid), "tanh": (IN, nn.Tanh), "softsign": (IN, nn.Softsign), "tanhshrink": (IN, nn.Tanhshrink),
    "elu": (IN, lambda: nn.ELU(0.7)), "celu": (IN, nn.CELU), "leaky_relu": (IN, nn.LeakyReLU),
    "hardshrink": (IN, nn.Hardshrink), "softshrink": (IN, lambda: nn.Softshrink(0.3)),
    "gelu": (IN, lambda: nn.GELU("tanh")), "softplus": (IN, lambda: nn.Softplus(2, 10)),
    "hardtanh": (IN, lambda: nn.Hardtanh(-0.5, 0.7)), "threshold": (IN, lambda: nn.Threshold(0.1, -3)),
    "glu": (IN, nn.GLU), "softmax": (IN, lambda: nn.Softmax(1)), "log_softmax": (IN, lambda: nn.LogSoftmax(0)),
    "softmin": (IN, lambda: nn.Softmin(-1)), "dropout": (IN, lambda: nn.Dropout(0.3)),
    "dropout2d": ((2, 5, 3, 3), lambda: nn.Dropout2d(0.4)), "flatten": ((2, 3, 4), nn.Flatten),
    "pad1d": ((2, 3, 4), lambda: nn.ReflectionPad1d((1, 2))), "pad2d": ((2, 3, 4, 4), lambda: nn.ConstantPad2d(2, 1.5)),
    "pad3d": ((2, 3, 3, 4, 2), lambda: nn.ReplicationPad3d((1, 0, 2, 1, 0, 1))),
    "unflatten": (IN, lambda: nn.Unflatten(1, (2, 3))),
    "max_pool1d": ((2, 3, 9), lambda: nn.MaxPool1d(3, 2, 1)),
    "max_pool2d": ((2, 3, 9, 8), lambda: nn.MaxPool2d((3, 2), dilation=2)), "avg_pool1d": ((2, 3, 9), lambda: nn.AvgPool1d(2)),
    "avg_pool2d": ((2, 3, 9, 8), lambda: nn.AvgPool2d(3, padding=1, ceil_mode=True, count_include_pad=False)),
    "adaptive_avg_pool2d": ((2, 3, 9, 8), lambda: nn.AdaptiveAvgPool2d((3, 2))),
    "adaptive_max_pool2d": ((2, 3, 9, 8), lambda: nn.AdaptiveMaxPool2d(2)),
}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the C++ program computed; it has also asserted what has no twin in Python."""
    folder = tmp_path_factory.mktemp("layers")
    source = Path(__file__).parent / "layers.cpp"
    run(build(source, folder), folder / "out.safetensors")
    return safetensors.load_file(folder / "out.safetensors")


@pytest.mark.parametrize("name", [*WEIGHTED, *PLAIN])
def test_a_layer(found, name):
    shape, make = {**WEIGHTED, **PLAIN}[name]
    T.manual_seed(7)
    layer = make()
    y = layer(T.randn(*shape))
    T.testing.assert_close(found[name], y.detach(), rtol=1e-6, atol=1e-7)
    if name in WEIGHTED:
        (y * y).sum().backward()
        T.testing.assert_close(found[name + ".grad"], next(layer.parameters()).grad, rtol=1e-5, atol=1e-6)


def test_layers_with_other_results(found):
    T.manual_seed(7)
    lstm = nn.LSTM(4, 6, 2, bidirectional=True, proj_size=3)
    gru, rnn = nn.GRU(4, 5, batch_first=True), nn.RNN(4, 5, nonlinearity="relu")
    cell, bilinear, table = nn.LSTMCell(4, 3), nn.Bilinear(3, 4, 2), nn.Embedding(10, 4, padding_idx=-1)
    attention = nn.MultiheadAttention(8, 2, kdim=4, vdim=6)
    x = T.randn(7, 3, 4)
    out, (h, c) = lstm(x)
    wanted = {
        "lstm": out,
        "lstm_h": h,
        "lstm_c": c,
        "gru": gru(x)[1],
        "rnn": rnn(x[:, 0])[0],
        "lstm_cell": cell(x[0])[1],
    }
    wanted["bilinear"] = bilinear(T.randn(2, 3), T.randn(2, 4))
    wanted["embedding"] = table(T.arange(10))
    mask, padding = T.ones(5, 7, dtype=T.bool).triu(3), T.zeros(2, 7, dtype=T.bool)
    padding[:, 6] = True
    wanted["attention"], wanted["attention_weights"] = attention(
        T.randn(5, 2, 8), T.randn(7, 2, 4), T.randn(7, 2, 6), attn_mask=mask, key_padding_mask=padding,
        average_attn_weights=False,
    )  # fmt: skip
    wanted |= {"lstm." + name: tensor for name, tensor in lstm.state_dict().items()}
    for name, tensor in wanted.items():
        T.testing.assert_close(found[name], tensor.detach(), rtol=1e-6, atol=1e-7)


def test_losses(found):
    T.manual_seed(7)
    x, y, c, w = T.randn(4, 3), T.rand(4, 3), T.randint(3, (4,)), T.rand(3)
    for name, loss in {
        "mse": nn.MSELoss(reduction="sum")(x, y),
        "l1": nn.L1Loss()(x, y),
        "smooth_l1": nn.SmoothL1Loss(reduction="none", beta=0.5)(x, y),
        "huber": nn.HuberLoss()(x, y),
        "cross_entropy": nn.CrossEntropyLoss(w, label_smoothing=0.1)(x, c),
        "nll": nn.NLLLoss()(x.log_softmax(1), c),
        "bce": nn.BCELoss()(y, y),
        "bce_logits": nn.BCEWithLogitsLoss(pos_weight=w)(x, y),
    }.items():
        T.testing.assert_close(found[name], loss, rtol=1e-6, atol=1e-7)


def test_initial_values(found):
    T.manual_seed(7)
    for name, tensor in {
        "trunc_normal": nn.init.trunc_normal_(T.empty(20, 30), 0.1, 0.5, -0.7, 0.9),
        "xavier_normal": nn.init.xavier_normal_(T.empty(4, 5, 3)),
        "kaiming_normal": nn.init.kaiming_normal_(T.empty(4, 5), mode="fan_out", nonlinearity="relu"),
        "orthogonal": nn.init.orthogonal_(T.empty(4, 6)),
    }.items():
        T.testing.assert_close(found[name], tensor, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("sgd", lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01)),
        ("sgd_nesterov", lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
        ("adam", lambda p: optim.Adam(p, lr=0.1, weight_decay=0.01, amsgrad=True)),
        ("adamw", lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.01)),
    ],
)
def test_an_optimizer(found, name, make):
    T.manual_seed(7)
    layer = nn.Linear(4, 3)
    x, optimizer = T.randn(5, 4), make(layer.parameters())
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for step in range(3):
        optimizer.zero_grad()
        layer(x).tanh().sum().backward()
        if step < 2:
            nn.utils.clip_grad_norm_(layer.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    T.testing.assert_close(found[name], layer.weight.detach(), rtol=1e-6, atol=1e-7)
