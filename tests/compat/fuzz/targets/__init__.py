"""targets: what kinds of calls are made; each module makes the cases of one target from a seed and a number."""

from . import (
    creation,
    einsum,
    gradients,
    indexing,
    out,
    pointwise,
    programs,
    promotion,
    reductions,
    shapes,
    solvers,
    sparse,
    views,
)

TARGETS = {m.__name__.rpartition(".")[2]: m.make
           for m in (creation, indexing, reductions, views, promotion, pointwise, shapes, out, gradients, programs, sparse, einsum, solvers)}  # fmt: skip
