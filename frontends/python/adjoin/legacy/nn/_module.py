"""adjoin.legacy.nn._module: what every module of the Lua style has: forward, backward, parameters with their gradients."""

import copy
import pickle

import adjoin
from adjoin import Tensor

from ._record import Record, differs, each, flat


def as_dtype(kind):
    """The dtype and, for a name of another device, the kind of device, of what was called a type: a name, a class, a dtype."""
    if isinstance(kind, adjoin.dtype):
        return kind, None
    name = kind if isinstance(kind, str) else repr(kind).split("'")[1]
    *place, name = name.split(".")
    known = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16"}
    if name not in known:
        raise ValueError(f"type: {kind!r}: a type of floating numbers is wanted, such as 'torch.DoubleTensor'")
    return getattr(adjoin, known[name]), place[-1] if place and place[-1] in ("cuda", "hip") else None


class Module:
    """A function with memory: ``forward(input)`` keeps ``output``, ``backward(input, gradOutput)`` keeps ``gradInput`` and adds to
    the gradients of its parameters, ``gradWeight`` and ``gradBias``.

    A module of yours defines ``updateOutput(input)``, ``updateGradInput(input, gradOutput)`` and, if it has parameters,
    ``accGradParameters(input, gradOutput, scale)``. Or it defines ``compute(input, weight, bias)`` with today's functions,
    and the derivatives follow.
    """

    PARAMETERS = ("weight", "bias")

    def __init__(self):
        self.output = Tensor()
        self.gradInput = Tensor()
        self.train = True
        self._record = None

    # The three of a module, by the tape.

    def compute(self, input, **parameters):
        """The output, as a function of today's tensors."""
        raise NotImplementedError(f"{type(self).__name__}: a module defines updateOutput(input), or compute(input)")

    def updateOutput(self, input):
        """Computes ``output``."""
        self._record = Record(self.compute, input, self._trained())
        self.output = self._record.output
        return self.output

    def updateGradInput(self, input, gradOutput):
        """Computes ``gradInput``, the gradient of the input."""
        self.gradInput, _ = self._recorded(input).gradients(gradOutput, parameters=False)
        return self.gradInput

    def accGradParameters(self, input, gradOutput, scale=1):
        """Adds ``scale`` times the gradients of the parameters to those that are kept."""
        if self._trained():
            _, found = self._recorded(input).gradients(gradOutput, input=False)
            self._add(found, scale)

    def _recorded(self, input):
        if self._record is None or not self._record.of(input):
            self._record = Record(self.compute, input, self._trained())
        return self._record

    def _trained(self):
        named = {name: getattr(self, name, None) for name in self.PARAMETERS}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def _gradient(self, name):
        return "grad" + name[0].upper() + name[1:]

    def _add(self, found, scale):
        for name, gradient in zip(self._trained(), found):
            getattr(self, self._gradient(name)).add_(gradient, alpha=scale)

    # Both ways.

    def forward(self, input):
        return self.updateOutput(input)

    def backward(self, input, gradOutput, scale=1):
        kind = type(self)
        if (kind.updateGradInput, kind.accGradParameters) != (Module.updateGradInput, Module.accGradParameters):
            self.updateGradInput(input, gradOutput)
            self.accGradParameters(input, gradOutput, scale)
            return self.gradInput
        self.gradInput, found = self._recorded(input).gradients(gradOutput)  # one way through the tape
        self._add(found, scale)
        return self.gradInput

    def __call__(self, input, gradOutput=None):
        self.forward(input)
        if gradOutput is None:
            return self.output
        self.backward(input, gradOutput)
        return self.output, self.gradInput

    def backwardUpdate(self, input, gradOutput, lr):
        """Goes back, and takes a step of ``lr`` with the gradient instead of keeping it."""
        self.updateGradInput(input, gradOutput)
        self.accUpdateGradParameters(input, gradOutput, lr)
        return self.gradInput

    def accUpdateGradParameters(self, input, gradOutput, lr):
        """accGradParameters that subtracts ``lr`` times the gradients from the parameters themselves."""
        names = list(self._trained())
        kept = {self._gradient(name): getattr(self, self._gradient(name)) for name in names}
        vars(self).update({self._gradient(name): getattr(self, name) for name in names})
        try:
            self.accGradParameters(input, gradOutput, -lr)
        finally:
            vars(self).update(kept)

    def sharedAccUpdateGradParameters(self, input, gradOutput, lr):
        """The same for parameters that others use, too."""
        if self.parameters():
            self.zeroGradParameters()
            self.accGradParameters(input, gradOutput, 1)
            self.updateParameters(lr)

    # Parameters.

    def _own(self, **tensors):
        """Takes parameters, each with a gradient of zeros."""
        for name, tensor in tensors.items():
            setattr(self, name, tensor)
            setattr(self, self._gradient(name), None if tensor is None else tensor.new_zeros(tensor.shape))

    def reset(self, stdv=None):
        """Draws the parameters anew."""

    def _uniform(self, stdv, usual):
        """Draws evenly from numbers with that deviation, or from those up to the usual bound."""
        bound = stdv * 3**0.5 if stdv else usual
        for tensor in self._trained().values():
            tensor.uniform_(-bound, bound)
        return self

    def parameters(self):
        """The parameters and their gradients, two lists; None where there are none."""
        names = list(self._trained())
        if not names:
            return None
        return [getattr(self, name) for name in names], [getattr(self, self._gradient(name)) for name in names]

    def zeroGradParameters(self):
        """Gradients of zeros."""
        for gradient in (self.parameters() or ((), ()))[1]:
            gradient.zero_()

    def updateParameters(self, learningRate):
        """A step down the gradient."""
        for parameter, gradient in zip(*(self.parameters() or ((), ()))):
            parameter.add_(gradient, alpha=-learningRate)

    def flattenParameters(self):
        """Moves all parameters into one vector, and their gradients into another one; returns both. The modules see their parts.

        To be called again after ``type()`` or ``clone()``.
        """
        found = self.parameters()
        if found is None:
            return Tensor(), Tensor()
        return _flattened(found[0]), _flattened(found[1])

    getParameters = flattenParameters

    # The tree.

    def _inner(self):
        return list(getattr(self, "modules", ()))

    def apply(self, callback):
        """Calls the function with this module and with all in it."""
        callback(self)
        for module in self._inner():
            module.apply(callback)

    def listModules(self):
        """This module and all in it, each once."""
        found = []
        self.apply(lambda module: found.append(module) if all(module is not other for other in found) else None)
        return found

    def findModules(self, cls, container=None):
        """The modules of a class (or of the name of one), and the container that each stands in."""
        kind = type(self)
        here = kind.__name__ == cls or f"nn.{kind.__name__}" == cls if isinstance(cls, str) else kind is cls
        found, places = ([self], [container]) if here else ([], [])
        for module in self._inner():
            more, where = module.findModules(cls, self)
            found, places = found + more, places + where
        return found, places

    def replace(self, callback):
        """The module that the function gives for this one, after it was asked for all inside."""
        out = callback(self)
        if getattr(out, "modules", None):
            out.modules = [module.replace(callback) for module in out.modules]
        return out

    def training(self):
        self.apply(lambda module: setattr(module, "train", True))

    def evaluate(self):
        self.apply(lambda module: setattr(module, "train", False))

    def clearState(self):
        """Forgets what forward and backward left."""

        def clear(module):
            module._record = None
            for name in ("output", "gradInput"):
                kept = getattr(module, name, None)
                setattr(module, name, [] if isinstance(kept, list) else Tensor())

        self.apply(clear)
        return self

    # Copies, types, devices, files.

    def share(self, mlp, *names):
        """Uses the tensors of those names of a module of the same form from now on."""
        for name in names:
            if isinstance(getattr(self, name, None), Tensor):
                getattr(self, name).data = getattr(mlp, name).data
        for mine, other in zip(self._inner(), mlp._inner()):
            mine.share(other, *names)
        return self

    def clone(self, *names):
        """A copy; what is named is shared with this module."""
        made = copy.deepcopy(self)
        return made.share(self, *names) if names else made

    def _converted(self, function, done):
        def convert(thing):
            if isinstance(thing, Module):
                return thing._converted(function, done)
            if differs(thing):
                if id(thing) not in done:  # one tensor in two places stays one
                    done[id(thing)] = (function(thing), thing)
                return done[id(thing)][0]
            return type(thing)(map(convert, thing)) if type(thing) in (list, tuple) else thing

        self._record = None
        for name, thing in list(vars(self).items()):
            setattr(self, name, convert(thing))
        return self

    def type(self, type=None, tensorCache=None):
        """The name of the type of its tensors; or all tensors of floating numbers converted to a type."""
        if type is None:
            first = (flat((self.parameters() or ([],))[0]) + flat(self.output))[0]
            return f"torch.{first.type().rsplit('.', 1)[-1]}"
        dtype, kind = as_dtype(type)
        return self._converted(lambda t: t.to(kind or t.device, dtype), {} if tensorCache is None else tensorCache)

    def float(self):
        return self.type("torch.FloatTensor")

    def double(self):
        return self.type("torch.DoubleTensor")

    def cuda(self, device=None, **how):
        """Moves its tensors; ``how``: ``async``, ``non_blocking``."""
        blocks = not any(how.values())
        return self._converted(lambda t: t.cuda(device, non_blocking=not blocks), {})

    def write(self, f):
        pickle.dump(self.__getstate__(), f)

    def read(self, f):
        vars(self).update(pickle.load(f))

    def __getstate__(self):
        return {**vars(self), "_record": None}

    def __setstate__(self, state):
        vars(self).update({"_record": None, **state})

    def __repr__(self):
        return f"nn.{type(self).__name__}"


def _flattened(tensors):
    """One vector for tensors, of which some may be the same memory; they become parts of it."""
    tensors = [t for i, t in enumerate(tensors) if not any(t is other for other in tensors[:i])]
    places, size = {}, 0
    for t in tensors:
        key = (t.data_ptr(), t.numel())
        if key not in places:
            places[key] = (size, t)
            size += t.numel()
    vector = tensors[0].new_empty(size)
    for t in tensors:
        start, first = places[(t.data_ptr(), t.numel())]
        part = vector[start : start + t.numel()].view(t.shape)
        if t is first:
            part.copy_(t)
        places[(part.data_ptr(), part.numel())] = (start, t)
        t.data = part
    return vector


__all__ = ["Module", "Record", "as_dtype", "each", "flat"]
