"""adjoin.onnx.operators: functions that PyTorch's exporter knows as whole operators."""

import adjoin


def shape_as_tensor(x):
    """The sizes as a tensor of int64."""
    return adjoin.tensor(tuple(x.shape), dtype=adjoin.int64)


def _shape_as_tensor(input):
    return shape_as_tensor(input)


def reshape_from_tensor_shape(x, shape):
    """The tensor with the sizes that another one holds."""
    return x.reshape(tuple(shape.tolist()))
