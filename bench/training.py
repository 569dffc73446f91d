"""bench/training.py: whole steps of training, and inference, of small and middling networks."""

from table import case


def mlp(T, widths):
    nn = T.nn
    layers = []
    for i, o in zip(widths, widths[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def lenet(T):
    nn = T.nn
    return nn.Sequential(
        *[nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Flatten(), nn.Linear(64 * 7 * 7, 256), nn.ReLU(), nn.Linear(256, 10)],
    )


def resnet18(T):
    nn = T.nn

    def conv(i, o, size, stride):
        return nn.Conv2d(i, o, size, stride, size // 2, bias=False)

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.first, self.norm1 = conv(i, o, 3, stride), nn.BatchNorm2d(o)
            self.second, self.norm2 = conv(o, o, 3, 1), nn.BatchNorm2d(o)
            self.relu = nn.ReLU()
            same = i == o and stride == 1
            self.short = nn.Identity() if same else nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o))

        def forward(self, x):
            y = self.relu(self.norm1(self.first(x)))
            return self.relu(self.norm2(self.second(y)) + self.short(x))

    stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    return nn.Sequential(
        *[conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)],
        *[b for i, o, stride in stages for b in (Block(i, o, stride), Block(o, o, 1))],
        *[nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)],
    )


def gpt(T, words=65, length=128, layers=6, heads=6, width=384):
    nn, F = T.nn, T.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            n, t, _ = x.shape
            q, k, v = (y.view(n, t, heads, width // heads).transpose(1, 2) for y in self.all(x).split(width, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(n, t, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, i):
            x = self.words(i) + self.places(T.arange(i.shape[1]))
            return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    return Network()


def step(make, sizes, optimizer, **options):
    def setup(T):
        T.manual_seed(0)
        model = make(T)
        o = getattr(T.optim, optimizer)(model.parameters(), **options)
        x, y = data(T, sizes)

        def one():
            o.zero_grad()
            loss = T.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            o.step()

        return {"one": one}

    return setup


def data(T, sizes):
    if len(sizes) == 2 and sizes[1] == 128:  # text
        return T.randint(0, 65, sizes), T.randint(0, 65, (sizes[0] * sizes[1],))
    return T.randn(*sizes), T.randint(0, 10, (sizes[0],))


WIDE, TINY = (784, 512, 512, 10), (16, 32, 32, 10)
for name, make, sizes, optimizer, options in (
    ("mlp_sgd", lambda T: mlp(T, WIDE), (64, 784), "SGD", {"lr": 0.01}),
    ("mlp_adam", lambda T: mlp(T, WIDE), (64, 784), "Adam", {"lr": 1e-3}),
    ("tiny_mlp_sgd", lambda T: mlp(T, TINY), (8, 16), "SGD", {"lr": 0.01}),
    ("tiny_mlp_adam", lambda T: mlp(T, TINY), (8, 16), "Adam", {"lr": 1e-3}),
    ("lenet", lenet, (64, 1, 28, 28), "SGD", {"lr": 0.01, "momentum": 0.9}),
    ("resnet18", resnet18, (8, 3, 64, 64), "SGD", {"lr": 0.01, "momentum": 0.9}),
    ("gpt", gpt, (4, 128), "AdamW", {"lr": 3e-4}),
):
    case("train", f"train_{name}", "one()", step(make, sizes, optimizer, **options))


def inference(make, sizes):
    def setup(T):
        model = make(T)
        model.eval()
        return {"model": model, "x": data(T, sizes)[0], "off": T.no_grad}

    return setup


for name, make, sizes in (
    ("mlp_1", lambda T: mlp(T, WIDE), (1, 784)),
    ("mlp_64", lambda T: mlp(T, WIDE), (64, 784)),
    ("resnet18_1", resnet18, (1, 3, 64, 64)),
    ("gpt_1", gpt, (1, 128)),
):
    case("train", f"infer_{name}", "with off(): model(x)", inference(make, sizes))
