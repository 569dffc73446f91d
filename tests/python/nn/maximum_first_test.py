"""tests/python/nn/maximum_first_test.py: Sequential takes a maximum before the ReLU in front of it: nobody may tell, and the
work is less."""

import pytest

import adjoin
import adjoin.nn.functional as F
from adjoin import nn

POOLS = [
    (1, (2, 3, 31), {"kernel_size": 3}),
    (2, (2, 8, 14, 14), {"kernel_size": 2}),
    (2, (2, 3, 15, 13), {"kernel_size": 3, "stride": 2, "padding": 1}),
    (2, (2, 3, 9, 8), {"kernel_size": 3, "stride": 1, "padding": 1, "dilation": 1, "ceil_mode": True}),
    (3, (1, 2, 7, 6, 5), {"kernel_size": 2, "ceil_mode": True}),
]


def numbers(*shape):
    """Ties, zeros of both signs, windows without a positive number, infinities and a NaN."""
    x = adjoin.randint(-6, 4, shape, generator=adjoin.Generator().manual_seed(3)).float()
    flat = x.view(-1)
    flat[::7] = -0.0
    flat[5], flat[6], flat[-1] = float("inf"), float("-inf"), float("nan")
    return x


@pytest.mark.parametrize(("dims", "shape", "window"), POOLS)
def test_value_and_gradient_are_those_of_the_written_order(dims, shape, window):
    pool = getattr(nn, f"MaxPool{dims}d")(**window)
    made = []
    for net in (nn.Sequential(nn.ReLU(), pool), lambda t: pool(F.relu(t))):
        x = numbers(*shape).requires_grad_()
        y = net(x)
        y.backward(adjoin.arange(1.0, y.numel() + 1).view(y.shape))
        made.append((y.detach(), x.grad))
    for ours, written in zip(*made, strict=True):  # a zero's sign may differ
        assert adjoin.equal(ours.nan_to_num(1234.5), written.nan_to_num(1234.5))


def names_along(result):
    names, node = [], result.grad_fn
    while node is not None:
        names.append(node.name().lower())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def place(names, part):
    return next(i for i, name in enumerate(names) if part in name)


def test_the_maximum_comes_first():
    x = adjoin.ones(1, 1, 4, 4, requires_grad=True)
    names = names_along(nn.Sequential(nn.Identity(), nn.ReLU(), nn.MaxPool2d(2), nn.ReLU())(x))
    assert place(names, "relu") < place(names, "maxpool")  # from the result back: ReLU is the last
    assert sum("relu" in name for name in names) == 2


class Louder(nn.ReLU):
    def forward(self, input):
        self.seen = tuple(input.shape)
        return super().forward(input)


def watched_by_hook(relu):
    relu.register_forward_hook(lambda m, args, out: setattr(m, "seen", tuple(args[0].shape)))


def watched_by_own_forward(relu):
    def forward(input):
        relu.seen = tuple(input.shape)
        return input.relu()

    relu.forward = forward


@pytest.mark.parametrize("watch", [watched_by_hook, watched_by_own_forward])
def test_a_relu_that_is_watched_keeps_its_place(watch):
    net = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))
    watch(net[0])
    net(adjoin.ones(1, 1, 4, 4))
    assert net[0].seen == (1, 1, 4, 4)


def test_other_classes_and_writes_in_place_keep_their_place():
    net = nn.Sequential(Louder(), nn.MaxPool2d(2))
    net(adjoin.ones(1, 1, 4, 4))
    assert net[0].seen == (1, 1, 4, 4)
    x = adjoin.full((1, 1, 4, 4), -1.0)
    nn.Sequential(nn.ReLU(inplace=True), nn.MaxPool2d(2))(x)
    assert x.max().item() == 0


def test_places_of_the_maxima_are_those_behind_the_relu():
    x = adjoin.tensor([[[[-2.0, -1.0], [-3.0, -4.0]]]])
    y, at = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2, return_indices=True))(x)
    assert y.item() == 0
    assert at.item() == 0


def test_errors_name_what_was_wrong():
    with pytest.raises(RuntimeError, match="max_pool2d"):
        nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))(adjoin.ones(3))
    with pytest.raises((TypeError, AttributeError), match="int|relu|Tensor"):
        nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))(3)


def test_alone_and_at_the_end():
    x = adjoin.tensor([-1.0, 2.0])
    assert nn.Sequential(nn.ReLU())(x).tolist() == [0, 2]
    assert nn.Sequential(nn.ReLU(), nn.ReLU())(x).tolist() == [0, 2]
    assert nn.Sequential()(x) is x
