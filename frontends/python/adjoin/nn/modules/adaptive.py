"""adjoin.nn.modules.adaptive: softmax over many classes of which few are frequent (Grave et al.,
2017)."""

from collections import namedtuple

import adjoin

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of targets (N) for inputs (N, in_features), and the mean loss.

    Classes are sorted by frequency. The head holds those before ``cutoffs[0]`` and one for each
    later cluster, whose weights shrink by ``div_value`` a cluster.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None,
                 dtype=None):  # fmt: skip
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rising = all(a < b for a, b in zip(cutoffs, cutoffs[1:], strict=False))
        whole = all(int(c) == c for c in cutoffs)
        if not rising or not whole or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, width, bias=False, **factory),
                                        Linear(width, size, bias=False, **factory)))  # fmt: skip

    def reset_parameters(self):
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_, target_):
        single = target_.dim() == 0
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != (1 if single else 2):
            raise RuntimeError(
                f"{1 if single else 2}D input tensor expected for a {target_.dim()}D target, but found {input_.dim()}D"
            )
        if not single and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        input = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        self._check_targets(target)
        output = self._target_log_prob(input, target)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _check_targets(self, target):
        if target.numel() and (target.min() < 0 or target.max() >= self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )

    def _target_log_prob(self, input, target):
        head = F.log_softmax(self.head(input), dim=1)
        place = target.clamp(max=self.shortlist_size - 1)
        output = head.gather(1, place.unsqueeze(1)).squeeze(1)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if not rows.numel():
                continue
            logs = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            chosen = (target.index_select(0, rows) - low).unsqueeze(1)
            whole = head[:, self.shortlist_size + i].index_select(0, rows)
            value = whole + logs.gather(1, chosen).squeeze(1)
            output = output.index_copy(0, rows, value)
        return output

    def _get_full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            logs = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(logs + head[:, self.shortlist_size + i].unsqueeze(1))
        return adjoin.cat(parts, 1)

    def log_prob(self, input):
        """The log-probabilities of all classes, (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most probable class of each row."""
        return self.log_prob(input).argmax(1)
