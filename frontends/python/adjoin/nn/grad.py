"""adjoin.nn.grad: the gradients of convolutions by themselves, of their inputs and their weights."""

import adjoin


def _gradient(dims, of, input, weight, grad_output, stride, padding, dilation, groups):
    """That of the input (0) or the weight (1); the other is a tensor, of the asked only the size counts."""
    convolution = getattr(adjoin.nn.functional, f"conv{dims}d")
    given = [input, weight]
    other = given[1 - of]
    with adjoin.enable_grad():
        # Its values do not matter: a convolution is linear in each.
        given[of] = other.new_zeros(tuple(given[of])).requires_grad_()
        made = convolution(*given, None, stride, padding, dilation, groups)
        if made.shape != grad_output.shape:
            raise ValueError(
                f"conv{dims}d_{('input', 'weight')[of]}: grad_output has the shape {list(grad_output.shape)}; a convolution of "
                f"{list(given[0].shape)} with {list(given[1].shape)} has {list(made.shape)}"
            )
        recorded = any(t.requires_grad for t in (other, grad_output))
        return adjoin.autograd.grad(made, given[of], grad_output, create_graph=recorded)[0]


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d with respect to its input, which has the size ``input_size``."""
    return _gradient(1, 0, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d with respect to its weight, which has the size ``weight_size``."""
    return _gradient(1, 1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d with respect to its input, which has the size ``input_size``."""
    return _gradient(2, 0, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d with respect to its weight, which has the size ``weight_size``."""
    return _gradient(2, 1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d with respect to its input, which has the size ``input_size``."""
    return _gradient(3, 0, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d with respect to its weight, which has the size ``weight_size``."""
    return _gradient(3, 1, input, weight_size, grad_output, stride, padding, dilation, groups)
