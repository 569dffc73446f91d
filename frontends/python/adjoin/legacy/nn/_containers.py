"""adjoin.legacy.nn._containers: modules of modules.

A container that branches is two functions: how its input is split over the modules, and how their outputs are joined.
"""

import adjoin
from adjoin.nn import functional as F

from ._module import Module, Record


class Container(Module):
    """Has modules: ``add(module)``, ``get(index)``, ``size()``."""

    def __init__(self, *args):
        super().__init__()
        self.modules = []
        for module in args:
            self.add(module)

    def add(self, module):
        self.modules.append(module)
        return self

    def get(self, index):
        return self.modules[index]

    def size(self):
        return len(self.modules)

    def applyToModules(self, func):
        for module in self.modules:
            func(module)

    def reset(self, stdv=None):
        self.applyToModules(lambda module: module.reset() if stdv is None else module.reset(stdv))

    def parameters(self):
        found = [pair for pair in (module.parameters() for module in self.modules) if pair is not None]
        if not found:
            return None
        return [p for weights, _ in found for p in weights], [g for _, gradients in found for g in gradients]

    # One way back for all that goes back: ``step(module, input, gradOutput)`` says what is done with each module.

    def _back(self, step, input, gradOutput):
        raise NotImplementedError(f"{type(self).__name__}: a container defines updateOutput and updateGradInput")

    def updateGradInput(self, input, gradOutput):
        self.gradInput = self._back(lambda m, x, g: m.updateGradInput(x, g), input, gradOutput)
        return self.gradInput

    def accGradParameters(self, input, gradOutput, scale=1):
        def step(module, x, g):
            module.accGradParameters(x, g, scale)
            return module.gradInput

        self._back(step, input, gradOutput)

    def backward(self, input, gradOutput, scale=1):
        if type(self)._back is Container._back:
            return super().backward(input, gradOutput, scale)
        self.gradInput = self._back(lambda m, x, g: m.backward(x, g, scale), input, gradOutput)
        return self.gradInput

    def accUpdateGradParameters(self, input, gradOutput, lr):
        def step(module, x, g):
            module.accUpdateGradParameters(x, g, lr)
            return module.gradInput

        self._back(step, input, gradOutput)

    def sharedAccUpdateGradParameters(self, input, gradOutput, lr):
        def step(module, x, g):
            module.sharedAccUpdateGradParameters(x, g, lr)
            return module.gradInput

        self._back(step, input, gradOutput)

    def __repr__(self):
        lines = [f"({i}): {module!r}" for i, module in enumerate(self.modules)]
        inside = "\n".join(lines).replace("\n", "\n  ")
        return f"{super().__repr__()} {{\n  {inside}\n}}"


class Sequential(Container):
    """One module after the other."""

    def insert(self, module, index):
        self.modules.insert(index, module)

    def remove(self, index):
        del self.modules[index]

    def updateOutput(self, input):
        for module in self.modules:
            input = module.updateOutput(input)
        self.output = input
        return input

    def _back(self, step, input, gradOutput):
        inputs = [input, *(module.output for module in self.modules)]
        for module, given in zip(reversed(self.modules), reversed(inputs[:-1])):
            gradOutput = step(module, given, gradOutput)
        return gradOutput


class _Branches(Container):
    def split(self, input):
        """The input of each module."""
        return [input] * len(self.modules)

    def join(self, outputs):
        return outputs

    def updateOutput(self, input):
        self._record = Record(self.split, input)
        if len(self._record.output) != len(self.modules):
            parts = f"the input has {len(self._record.output)} parts for {len(self.modules)} modules"
            raise ValueError(f"{type(self).__name__}: {parts}; one each is wanted")
        outputs = [module.updateOutput(x) for module, x in zip(self.modules, self._record.output)]
        self._joined = Record(self.join, outputs)
        self.output = self._joined.output
        return self.output

    def _back(self, step, input, gradOutput):
        if self._record is None or not self._record.of(input):
            self.updateOutput(input)
        gradients, _ = self._joined.gradients(gradOutput, parameters=False)
        inner = [step(*each) for each in zip(self.modules, self._record.output, gradients)]
        return self._record.gradients(inner, parameters=False)[0]

    def __getstate__(self):
        return {**super().__getstate__(), "_joined": None}


class Concat(_Branches):
    """The outputs of all modules for the same input, one after the other along a dimension."""

    def __init__(self, dimension, *args):
        super().__init__(*args)
        self.dimension = dimension

    def join(self, outputs):
        return adjoin.cat(outputs, self.dimension)


class DepthConcat(Concat):
    """Concat of pictures of several sizes: the smaller ones are centred between zeros."""

    def join(self, outputs):
        rank = outputs[0].dim()
        sizes = [max(out.shape[d] for out in outputs) for d in range(rank)]
        sizes[self.dimension] = None
        return adjoin.cat([F.pad(out, self._margins(out.shape, sizes)) for out in outputs], self.dimension)

    def _margins(self, shape, sizes):
        margins = []
        for have, want in zip(reversed(shape), reversed(sizes)):
            missing = 0 if want is None else want - have
            margins += [missing // 2, missing - missing // 2]
        return margins


class ConcatTable(_Branches):
    """A table of the outputs of all modules for the same input."""


class ParallelTable(_Branches):
    """Each module has its own input, the next one of a table."""

    def split(self, input):
        return input


class Parallel(_Branches):
    """The slices of the input along a dimension, each through its own module; the outputs along another one."""

    def __init__(self, inputDimension, outputDimension, *args):
        super().__init__(*args)
        self.inputDimension, self.outputDimension = inputDimension, outputDimension

    def split(self, input):
        return list(input.unbind(self.inputDimension))

    def join(self, outputs):
        return adjoin.cat(outputs, self.outputDimension)
