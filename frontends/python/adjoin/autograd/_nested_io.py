"""adjoin.autograd._nested_io: functions of 2016 whose arguments and results are trees of tensors."""

from .. import _C
from .function import Function


def _leaves(tree):
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in _leaves(item)]
    return [tree] if isinstance(tree, _C.Tensor) or tree is None else []


def _like(tree, leaves):
    """The tree with other leaves in its places."""
    if isinstance(tree, (list, tuple)):
        made = [_like(item, leaves) for item in tree]
        return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)
    return next(leaves) if isinstance(tree, _C.Tensor) or tree is None else tree


class NestedIOFunction(Function):
    """``Mine()(tree, ...)`` runs ``forward_extended(*trees)``, which returns a tree; ``backward_extended`` takes a tree of
    gradients like it and returns gradients for the leaves of the arguments. For old programs; Function takes tensors one by one."""

    def __call__(self, *trees):
        self._trees = trees
        results = super().__call__(*_leaves(trees))
        return _like(self._results, iter(results if isinstance(results, tuple) else (results,)))

    def forward(self, *leaves):
        """Calls forward_extended with the trees of tensors."""
        made = self.forward_extended(*_like(self.__dict__.pop("_trees"), iter(leaves)))
        found = _leaves(made)
        self._results = _like(made, iter([None] * len(found)))  # the form alone: it lives as long as the graph
        return tuple(found) if len(found) != 1 else found[0]

    def backward(self, *gradients):
        """Calls backward_extended with the tree of gradients."""
        return tuple(_leaves(self.backward_extended(*self._split(gradients))))

    def _split(self, gradients):
        made = _like(self._results, iter(gradients))
        return made if isinstance(made, tuple) else (made,)

    def save_for_backward(self, *trees):
        """Keeps the tensors of trees until backward asks for ``saved_tensors``."""
        self._saved_form = _like(trees, iter([None] * len(_leaves(trees))))
        super().save_for_backward(*_leaves(trees))

    @property
    def saved_tensors(self):
        """The trees that were saved."""
        return _like(self._saved_form, iter(super().saved_tensors))

    def mark_dirty(self, *trees):
        """Says that forward wrote into their tensors."""
        super().mark_dirty(*_leaves(trees))

    def mark_non_differentiable(self, *trees):
        """Says that no gradient comes for their tensors."""
        super().mark_non_differentiable(*_leaves(trees))

    def forward_extended(self, *trees):
        """What the function computes."""
        raise NotImplementedError("a subclass of NestedIOFunction must define forward_extended")

    def backward_extended(self, *gradients):
        """The gradients of the arguments' leaves from those of the results."""
        raise NotImplementedError("a subclass of NestedIOFunction must define backward_extended to be differentiated")
