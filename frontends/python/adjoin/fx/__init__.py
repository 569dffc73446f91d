"""adjoin.fx: programs as graphs that a program can read and change.

``symbolic_trace(module)`` runs a forward with proxies and gives a GraphModule: a module whose ``graph`` lists what was
done, and whose ``forward`` is generated from it.
"""

from . import _pytree, immutable_collections, traceback  # noqa: F401
from ._arguments import PH
from ._patches import wrap
from ._symbolic_trace import ProxyableClassMeta, Tracer, symbolic_trace
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from ._programs import from_program, to_program
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
    "Transformer", "from_program", "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "to_program", "wrap",
]  # fmt: skip
