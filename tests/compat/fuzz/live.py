"""live.py: a case that grows step by step in PyTorch, so that the next step knows the shapes that are there."""

import math
import warnings

import numpy as np
import torch

from .case import Case, compiled, within


class Live:
    def __init__(self, d):
        self.d, self.steps = d, []
        self.names = {"t": torch, "inf": math.inf, "nan": math.nan, "np": np}
        self.made = 0
        with within(torch):
            for line in d.setup:
                exec(compiled(line), self.names)

    def tensors(self):
        return [k for k, v in self.names.items() if isinstance(v, torch.Tensor)]

    def pick(self, wanted=lambda v: True):
        found = [k for k in self.tensors() if wanted(self.names[k])]
        return self.d.pick(found) if found else None

    def small(self):
        """A tensor of few elements, if there is one."""
        return self.pick(lambda v: v.numel() < 500) or self.pick()

    def new(self):
        self.made += 1
        return f"v{self.made}"

    def step(self, line):
        """Takes a step that PyTorch takes; one in twenty of those that it refuses, too, which ends the case: then False."""
        try:
            with warnings.catch_warnings(), within(torch):
                warnings.simplefilter("ignore")
                exec(compiled(line), self.names)
        except Exception:
            if self.d.chance(0.05):
                self.steps.append(line)
                return False
            return True
        self.steps.append(line)
        return True

    def case(self, name):
        return Case(self.d.target, name, self.d.setup, self.steps)
