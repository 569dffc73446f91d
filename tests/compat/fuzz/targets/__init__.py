"""targets: what kinds of calls are made; each module makes the cases of one target from a seed and a number."""

from . import creation, gradients, indexing, out, pointwise, programs, promotion, reductions, shapes, sparse, views

TARGETS = {m.__name__.rpartition(".")[2]: m.make
           for m in (creation, indexing, reductions, views, promotion, pointwise, shapes, out, gradients, programs, sparse)}  # fmt: skip
