"""adjoin.nn.utils.convert_parameters: parameters to one vector and back."""

import adjoin


def parameters_to_vector(parameters):
    """All parameters, flattened, one after the other; differentiable."""
    return adjoin.cat([param.view(-1) for param in parameters])


def vector_to_parameters(vec, parameters):
    """Makes the parameters' data views of ``vec``, in order."""
    if not isinstance(vec, adjoin.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for param in parameters:
        end = start + param.numel()
        param.data = vec[start:end].view_as(param).data
        start = end
