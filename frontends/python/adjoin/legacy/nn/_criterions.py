"""adjoin.legacy.nn._criterions: what is minimised. ``forward(input, target)`` gives a number, ``backward`` the gradient of the input."""

import adjoin

from adjoin.nn import functional as F

from ._module import Module, Record


class Criterion(Module):
    """One of yours defines ``updateOutput(input, target)`` and ``updateGradInput(input, target)``; or ``compute(input, target)`` with
    today's functions."""

    PARAMETERS = ()

    def __init__(self, sizeAverage=True):
        super().__init__()
        self.output = 0
        self.sizeAverage = sizeAverage

    @property
    def reduction(self):
        """The word of today's functions for sizeAverage."""
        return "mean" if self.sizeAverage else "sum"

    def compute(self, input, target):
        """The loss, a tensor with one number."""
        raise NotImplementedError(f"{type(self).__name__}: a criterion defines updateOutput, or compute(input, target)")

    def _run(self, input, target):
        self._record = Record(lambda x: self.compute(x, target), input)
        self._target = target
        return self._record

    def updateOutput(self, input, target):
        self.output = self._run(input, target).output.item()
        return self.output

    def updateGradInput(self, input, target):
        kept = self._record
        same = kept is not None and kept.of(input) and self._target is target
        kept = kept if same else self._run(input, target)
        self.gradInput, _ = kept.gradients(kept.output.new_ones(()), parameters=False)
        return self.gradInput

    def forward(self, input, target):
        return self.updateOutput(input, target)

    def backward(self, input, target):
        return self.updateGradInput(input, target)

    def __call__(self, input, target):
        return self.forward(input, target)

    def __getstate__(self):
        return {**super().__getstate__(), "_target": None}


def _averaged(criterion, losses):
    return losses.mean() if criterion.sizeAverage else losses.sum()


class AbsCriterion(Criterion):
    def compute(self, input, target):
        return F.l1_loss(input, target, reduction=self.reduction)


class MSECriterion(Criterion):
    def compute(self, input, target):
        return F.mse_loss(input, target, reduction=self.reduction)


class WeightedMSECriterion(Criterion):
    """The squares to the target times the weight."""

    def __init__(self, weight, sizeAverage=True):
        super().__init__(sizeAverage)
        self.weight = weight

    def compute(self, input, target):
        return F.mse_loss(input, target * self.weight, reduction=self.reduction)


class SmoothL1Criterion(Criterion):
    def compute(self, input, target):
        return F.smooth_l1_loss(input, target, reduction=self.reduction)


class BCECriterion(Criterion):
    def __init__(self, weights=None, sizeAverage=True):
        super().__init__(sizeAverage)
        self.weights = weights

    def compute(self, input, target):
        return F.binary_cross_entropy(input, target, self.weights, reduction=self.reduction)


class DistKLDivCriterion(Criterion):
    """From logarithms of chances to chances."""

    def compute(self, input, target):
        return _averaged(self, F.kl_div(input, target, reduction="none"))


class ClassNLLCriterion(Criterion):
    def __init__(self, weights=None, sizeAverage=True):
        super().__init__(sizeAverage)
        self.weights = weights

    def compute(self, input, target):
        target = adjoin.as_tensor(target, device=input.device).long()
        if input.dim() == 1:
            target = target.reshape(())
        return F.nll_loss(input, target, self.weights, reduction=self.reduction)


class SpatialClassNLLCriterion(ClassNLLCriterion):
    """For each place of pictures."""


class CrossEntropyCriterion(ClassNLLCriterion):
    def compute(self, input, target):
        input = input.squeeze()
        target = adjoin.as_tensor(target, device=input.device).squeeze()
        return super().compute(input.log_softmax(0 if input.dim() == 1 else 1), target)


class SoftMarginCriterion(Criterion):
    def compute(self, input, target):
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class _Margin(Criterion):
    def __init__(self, margin=1, sizeAverage=True):
        super().__init__(sizeAverage)
        self.margin = margin


class MarginCriterion(_Margin):
    def compute(self, input, target):
        return _averaged(self, (self.margin - input * target).clamp(min=0))


class MarginRankingCriterion(_Margin):
    """Of [first, second] the greater one by a margin: the first where the target is 1, the second where it is -1."""

    def compute(self, input, target):
        first, second = input
        return _averaged(self, ((second - first) * target + self.margin).clamp(min=0))


class HingeEmbeddingCriterion(_Margin):
    """A distance itself where the target is 1; what it lacks to the margin where that is -1."""

    def compute(self, input, target):
        target = adjoin.as_tensor(target, device=input.device)
        return _averaged(self, adjoin.where(target > 0, input, (self.margin - input).clamp(min=0)))


class L1HingeEmbeddingCriterion(_Margin):
    """The same for the sum of the magnitudes between two tensors; the target is one number."""

    def __init__(self, margin=1):
        super().__init__(margin)

    def compute(self, input, target):
        distance = (input[0] - input[1]).abs().sum()
        return distance if float(target) > 0 else (self.margin - distance).clamp(min=0)


class CosineEmbeddingCriterion(_Margin):
    def __init__(self, margin=0, sizeAverage=True):
        super().__init__(margin, sizeAverage)

    def compute(self, input, target):
        first, second = (x if x.dim() > 1 else x.unsqueeze(0) for x in input)
        target = adjoin.as_tensor(target, device=first.device).reshape(-1).expand(first.shape[0])
        return F.cosine_embedding_loss(first, second, target, margin=self.margin, reduction=self.reduction)


class MultiMarginCriterion(Criterion):
    def __init__(self, p=1, weights=None, margin=1, sizeAverage=True):
        super().__init__(sizeAverage)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginCriterion: p is {p}, wanted 1 or 2")
        self.p, self.weights, self.margin = p, weights, margin

    def compute(self, input, target):
        target = adjoin.as_tensor(target, device=input.device).long().reshape(input.shape[:-1])
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weights, reduction=self.reduction)


class MultiLabelMarginCriterion(Criterion):
    """The target lists the classes of a sample; -1 ends the list."""

    def compute(self, input, target):
        return F.multilabel_margin_loss(input, target.long(), reduction=self.reduction)


class MultiLabelSoftMarginCriterion(Criterion):
    def __init__(self, weights=None):
        super().__init__()
        self.weights = weights

    def compute(self, input, target):
        return F.multilabel_soft_margin_loss(input, target, self.weights)


class L1Cost(Criterion):
    """The sum of the magnitudes; there is no target."""

    def __init__(self):
        super().__init__()

    def compute(self, input, target):
        return input.abs().sum()

    def forward(self, input, target=None):
        return self.updateOutput(input, target)

    def backward(self, input, target=None):
        return self.updateGradInput(input, target)

    def __call__(self, input, target=None):
        return self.forward(input, target)


def _simplex(n):
    """n + 1 points at equal angles, in n dimensions."""
    points = adjoin.zeros(n + 1, n, dtype=adjoin.float64)
    for k in range(n):
        points[k, k] = (1 - (points[k, :k] ** 2).sum()).sqrt()
        points[k + 1 :, k] = (-1 / n - (points[k, :k] ** 2).sum()) / points[k, k]
    return points


class ClassSimplexCriterion(MSECriterion):
    """Each class is a corner of a regular simplex; squares to the corner of the target."""

    def __init__(self, nClasses):
        super().__init__()
        if nClasses < 2:
            raise ValueError(f"ClassSimplexCriterion: {nClasses} classes, wanted 2 or more")
        self.nClasses = nClasses
        corners = _simplex(nClasses - 1).to(adjoin.get_default_dtype())
        self.simplex = F.pad(corners, (0, 1))

    def compute(self, input, target):
        return super().compute(input, self.simplex.to(input)[adjoin.as_tensor(target).long()].view(input.shape))

    def getPredictions(self, input):
        """For each class how far the output points to its corner."""
        return input @ self.simplex.to(input).t()

    def getTopPrediction(self, input):
        return self.getPredictions(input).max(-1).indices


class _Weighted(Criterion):
    """A sum of criterions, each with a weight."""

    def __init__(self):
        super().__init__()
        self.criterions, self.weights = [], []

    def add(self, criterion, weight=1):
        self.criterions.append(criterion)
        self.weights.append(weight)
        return self

    def _inner(self):
        return self.criterions


def _weighted(weight, gradient):
    return [_weighted(weight, g) for g in gradient] if isinstance(gradient, list) else gradient * weight


def _summed(tables):
    if isinstance(tables[0], list):
        return [_summed(parts) for parts in zip(*tables)]
    return sum(tables[1:], tables[0])


class MultiCriterion(_Weighted):
    """Several criterions of the same input and target."""

    def updateOutput(self, input, target):
        self.output = sum(w * c.updateOutput(input, target) for w, c in zip(self.weights, self.criterions))
        return self.output

    def updateGradInput(self, input, target):
        parts = [_weighted(w, c.updateGradInput(input, target)) for w, c in zip(self.weights, self.criterions)]
        self.gradInput = _summed(parts)
        return self.gradInput


class ParallelCriterion(_Weighted):
    """Criterion i of input i and target i; with ``repeatTarget`` of one target."""

    def __init__(self, repeatTarget=False):
        super().__init__()
        self.repeatTarget = repeatTarget

    def _parts(self, input, target):
        targets = [target] * len(input) if self.repeatTarget else target
        return list(zip(self.criterions, self.weights, input, targets, strict=True))

    def updateOutput(self, input, target):
        self.output = sum(w * c.updateOutput(x, t) for c, w, x, t in self._parts(input, target))
        return self.output

    def updateGradInput(self, input, target):
        self.gradInput = [_weighted(w, c.updateGradInput(x, t)) for c, w, x, t in self._parts(input, target)]
        return self.gradInput


class CriterionTable(Module):
    """A criterion as a module, whose input is [input, target]."""

    def __init__(self, criterion):
        super().__init__()
        self.criterion = criterion

    def _inner(self):
        return [self.criterion]

    def updateOutput(self, input):
        self.output = self.criterion.updateOutput(*input)
        return self.output

    def updateGradInput(self, input, gradOutput=None):
        self.gradInput = self.criterion.updateGradInput(*input)
        return self.gradInput
