"""adjoin.fx.passes.infra.pass_base: the base of programs over graphs."""

import abc
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module, and whether it was changed."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A program over a GraphModule: ``call`` does it; ``requires`` and ``ensures`` may check before and after."""

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module):
        """Changes the module and gives a PassResult."""

    def requires(self, graph_module):  # noqa: B027
        """Raises where the module is not fit for it."""

    def ensures(self, graph_module):  # noqa: B027
        """Raises where the module came out wrong."""
