"""bench/layers.py: layers forward, and forward with backward: convolutions, pooling, norms, recurrence, attention."""

from table import case


def layer(suite, name, make, flops=0.0, moved=0.0):
    """make(T) -> (function of the inputs, inputs, parameters)."""

    def forward(T):
        f, inputs, _ = make(T)
        return {"f": f, "x": inputs, "off": T.no_grad}

    def both(T):
        f, inputs, parameters = make(T)
        for x in inputs:
            x.requires_grad_(True)
        with T.no_grad():
            g = T.ones_like(f(*inputs))
        return {"f": f, "x": inputs, "of": [*parameters, *inputs], "g": g}

    case(suite, name + "_fwd", "with off(): f(*x)", forward, flops=flops, bytes=moved)
    case(suite, name + "_fwdbwd", "T.autograd.grad(f(*x), of, g)", both, flops=3 * flops)


def convolution(name, x, w, stride, padding, groups=1):
    side = (x[2] + 2 * padding - w[2]) // stride + 1

    def make(T):
        weight = T.randn(*w, requires_grad=True)

        def f(inputs):
            return T.nn.functional.conv2d(inputs, weight, None, stride, padding, 1, groups)

        return f, [T.randn(*x)], [weight]

    layer("conv", name, make, flops=2.0 * x[0] * side * side * w[0] * w[1] * w[2] * w[3])


convolution("conv3x3_64_56", (8, 64, 56, 56), (64, 64, 3, 3), 1, 1)
convolution("conv1x1_256_64_56", (8, 256, 56, 56), (64, 256, 1, 1), 1, 0)
convolution("conv1x1_256_14", (8, 256, 14, 14), (256, 256, 1, 1), 1, 0)
convolution("conv3x3_256_14", (8, 256, 14, 14), (256, 256, 3, 3), 1, 1)
convolution("conv3x3_512_7", (8, 512, 7, 7), (512, 512, 3, 3), 1, 1)
convolution("conv3x3_stride2", (8, 64, 56, 56), (128, 64, 3, 3), 2, 1)
convolution("conv7x7_stem", (8, 3, 224, 224), (64, 3, 7, 7), 2, 3)
convolution("conv_depthwise", (8, 256, 28, 28), (256, 1, 3, 3), 1, 1, 256)


def max_pool(T):
    return lambda x: T.nn.functional.max_pool2d(x, 3, 2, 1), [T.randn(8, 64, 112, 112)], []


def global_average(T):
    return lambda x: T.nn.functional.adaptive_avg_pool2d(x, 1), [T.randn(8, 512, 28, 28)], []


def batch_norm(T):
    m = T.nn.BatchNorm2d(64)
    return m, [T.randn(8, 64, 56, 56)], list(m.parameters())


layer("conv", "max_pool3x3", max_pool, moved=5.0 * 8 * 64 * 112 * 112)
layer("conv", "global_average", global_average, moved=4.0 * 8 * 512 * 784)
layer("conv", "batch_norm", batch_norm, moved=12.0 * 8 * 64 * 56 * 56)


def recurrent(kind, gates, steps, batch, width):
    def make(T):
        m = getattr(T.nn, kind)(width, width)
        return lambda x: m(x)[0], [T.randn(steps, batch, width)], list(m.parameters())

    flops = 2.0 * steps * batch * 2 * width * gates * width
    layer("rnn", f"{kind.lower()}_{steps}x{batch}x{width}", make, flops=flops)


recurrent("LSTM", 4, 35, 20, 650)
recurrent("LSTM", 4, 35, 8, 128)
recurrent("GRU", 3, 35, 20, 650)


def attention(causal):
    def make(T):
        sdpa = T.nn.functional.scaled_dot_product_attention
        return lambda q, k, v: sdpa(q, k, v, is_causal=causal), [T.randn(4, 8, 512, 64) for _ in "qkv"], []

    return make


def plain_attention(T):
    def f(q, k, v):
        return T.softmax(q @ k.transpose(-2, -1) * 0.125, -1) @ v

    return f, [T.randn(4, 8, 512, 64) for _ in "qkv"], []


DENSE = 4.0 * 4 * 8 * 512 * 512 * 64
layer("attn", "sdpa", attention(False), flops=DENSE)
layer("attn", "sdpa_causal", attention(True), flops=DENSE / 2)
layer("attn", "attention_plain", plain_attention, flops=DENSE)
