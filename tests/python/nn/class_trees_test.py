"""tests/python/nn/class_trees_test.py: which layer is a kind of which: programs choose by isinstance, libraries derive from the bases."""

import importlib

import adjoin
import pytest
from adjoin import nn

BASES = {
    "dropout": {"_DropoutNd": "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout"},
    "pooling": {
        "_MaxPoolNd": "MaxPool1d MaxPool2d MaxPool3d",
        "_AvgPoolNd": "AvgPool1d AvgPool2d AvgPool3d",
        "_MaxUnpoolNd": "MaxUnpool1d MaxUnpool2d MaxUnpool3d",
        "_LPPoolNd": "LPPool1d LPPool2d LPPool3d",
        "_AdaptiveMaxPoolNd": "AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d",
        "_AdaptiveAvgPoolNd": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d",
    },
    "padding": {
        "_ConstantPadNd": "ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d",
        "_ReflectionPadNd": "ReflectionPad1d ReflectionPad2d ReflectionPad3d",
        "_ReplicationPadNd": "ReplicationPad1d ReplicationPad2d ReplicationPad3d",
        "_CircularPadNd": "CircularPad1d CircularPad2d CircularPad3d",
    },
    "conv": {"_ConvNd": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"},
    "batchnorm": {"_BatchNorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm"},
}


@pytest.mark.parametrize("room", BASES)
def test_each_kind_has_its_base_and_no_other_layer_has_it(room):
    module = importlib.import_module("adjoin.nn.modules." + room)
    layers = {name: layer for name in module.__all__ if isinstance(layer := getattr(module, name), type)}
    for base, names in BASES[room].items():
        assert {n for n, layer in layers.items() if issubclass(layer, getattr(module, base))} == set(names.split()), (
            base
        )


@pytest.mark.parametrize(
    "layer, other",
    [
        (nn.AvgPool3d, nn.AvgPool2d),
        (nn.CELU, nn.ELU),
        (nn.Softshrink, nn.Hardshrink),
        (nn.CrossMapLRN2d, nn.LocalResponseNorm),
        (adjoin.optim.lr_scheduler.MultiplicativeLR, adjoin.optim.lr_scheduler.LambdaLR),
    ],
)
def test_what_is_alike_is_no_kind_of_the_other(layer, other):
    assert not issubclass(layer, other)


def test_they_still_compute():
    x = adjoin.arange(8.0).reshape(1, 1, 2, 2, 2) - 3
    assert nn.AvgPool3d(2)(x).item() == 0.5 and nn.AvgPool2d(2)(x[0]).tolist() == [[[[-1.5]], [[2.5]]]]
    assert nn.AvgPool1d(2)(x[0, 0]).tolist() == [[[-2.5], [-0.5]], [[1.5], [3.5]]]
    assert nn.CELU(2.0)(x).allclose(nn.functional.celu(x, 2.0)) and repr(nn.CELU(2.0)) == "CELU(alpha=2.0)"
    assert (
        nn.Softshrink(1.0)(x).flatten().tolist() == [-2, -1, 0, 0, 0, 1, 2, 3]
        and repr(nn.Hardshrink()) == "Hardshrink(0.5)"
    )
    assert nn.CrossMapLRN2d(2)(x[0]).equal(nn.LocalResponseNorm(2)(x[0]))
    assert nn.ReflectionPad1d(1)(x[0, 0]).shape == (2, 2, 4) and nn.ReplicationPad1d((1, 0))(x[0, 0])[
        0, 0
    ].tolist() == [-3, -3, -2]
    assert nn.AdaptiveAvgPool2d(1)(x[0]).flatten().tolist() == [-1.5, 2.5]
    optimizer = adjoin.optim.SGD([adjoin.ones(1, requires_grad=True)], lr=1.0)
    schedule = adjoin.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.5] and schedule.state_dict()["lr_lambdas"] == [None]
