"""tests/python/toplevel/fx_net.py: the network that the tests of adjoin.fx trace."""

import adjoin
import adjoin.nn.functional as F
from adjoin import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.scale = nn.Parameter(adjoin.full((1,), 0.5))

    def forward(self, x):
        out = F.relu(self.bn(self.conv(x)))
        out = out + x
        return out * self.scale


class Net(nn.Module):
    """A residual network: a stem, blocks in a Sequential, pooling, a head, dropout and a buffer."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True))
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(16, 4)
        self.register_buffer("shift", adjoin.arange(4.0))

    def forward(self, x, *, flip: bool = False):
        x = self.blocks(self.stem(x))
        a, b = F.adaptive_avg_pool2d(x, 1), F.max_pool2d(x, x.shape[-1])
        x = adjoin.flatten(adjoin.cat([a, b], dim=1), 1)
        return F.dropout(self.head(x), 0.1, self.training) + self.shift


def eval_net():
    adjoin.manual_seed(0)
    made = Net().eval()
    for part in made.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
    return made


def an_image():
    return adjoin.randn(2, 3, 8, 8, generator=adjoin.Generator().manual_seed(1))


def same(a, b):
    return a.shape == b.shape and bool((a == b).all())


def targets(gm):
    return [n.target for n in gm.graph.nodes]
