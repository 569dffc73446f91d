"""adjoin.legacy.nn._record: one run of a function on the tape, kept so that gradients can be asked for later, and more than once.

A table is a list of tensors and tables. Gradients of a table are a table of the same form; a tensor of whole numbers has zeros.
"""

from adjoin import Tensor, enable_grad
from adjoin.autograd import grad


def each(function, table):
    """The table of what the function gives for each tensor."""
    if isinstance(table, (list, tuple)):
        return [each(function, part) for part in table]
    return function(table)


def flat(table):
    """The tensors of a table, one after the other."""
    if isinstance(table, (list, tuple)):
        return [tensor for part in table for tensor in flat(part)]
    return [table]


def differs(tensor):
    """Can a gradient belong to it?"""
    return isinstance(tensor, Tensor) and (tensor.is_floating_point() or tensor.is_complex())


def _leaf(tensor):
    return tensor.detach().requires_grad_() if differs(tensor) else tensor


class Record:
    """``function(input, **parameters)``, recorded; ``output`` has its values."""

    def __init__(self, function, input, parameters=None):
        self.given = flat(input)
        self.trained = list((parameters or {}).values())
        self.versions = [tensor._version for tensor in self.trained]
        self.input = each(_leaf, input)
        self.parameters = {name: _leaf(tensor) for name, tensor in (parameters or {}).items()}
        with enable_grad():
            self.result = function(self.input, **self.parameters)
        self.output = each(lambda t: t.detach() if isinstance(t, Tensor) else t, self.result)

    def of(self, input):
        """Is it a run for this input, the same tensors, with the parameters as they are now?"""
        given = flat(input)
        same = len(given) == len(self.given) and all(a is b for a, b in zip(given, self.given))
        return same and self.versions == [tensor._version for tensor in self.trained]

    def gradients(self, gradOutput, input=True, parameters=True):
        """The gradients of the input, a table like it, and a list of those of the parameters; None for what was not asked."""
        wanted = [t for t in flat(self.input) if differs(t)] if input else []
        wanted += list(self.parameters.values()) if parameters else []
        results, weights = flat(self.result), flat(gradOutput)
        if len(results) != len(weights):
            raise ValueError(f"backward: gradOutput has {len(weights)} tensors, the output {len(results)}")
        pairs = [(r, _fitted(g, r)) for r, g in zip(results, weights) if isinstance(r, Tensor) and r.requires_grad]
        if pairs and wanted:
            results, weights = zip(*pairs)
            found = grad(results, wanted, weights, retain_graph=True, allow_unused=True)
        else:
            found = [None] * len(wanted)
        found = iter([w.detach().new_zeros(w.shape) if g is None else g for w, g in zip(wanted, found)])
        of_input = each(lambda t: next(found) if differs(t) else _nothing(t), self.input) if input else None
        return of_input, list(found) if parameters else None


def _fitted(gradient, result):
    if gradient.numel() != result.numel():
        shapes = f"{tuple(gradient.shape)}, the output {tuple(result.shape)}"
        raise ValueError(f"backward: gradOutput has shape {shapes}; forward the input that is gone back through, first")
    return gradient.to(result.dtype).reshape(result.shape)


def _nothing(tensor):
    return tensor.new_zeros(tensor.shape) if isinstance(tensor, Tensor) else tensor
