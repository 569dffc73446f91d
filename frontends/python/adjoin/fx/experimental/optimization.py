"""adjoin.fx.experimental.optimization: a convolution and the batch norm after it as one convolution."""

import copy

from ... import nn
from ...nn.utils import fusion
from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule

__all__ = ["fuse", "remove_dropout"]

_PAIRS = ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d))


def _graph_module(model, inplace, no_trace):
    model = model if inplace else copy.deepcopy(model)
    return model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)


def fuse(model, inplace=False, no_trace=False):
    """A model for evaluation, in which convolutions have taken in the batch norms after them."""
    made = _graph_module(model, inplace, no_trace)
    if made.training:
        raise AssertionError("fuse: batch norms are fused with their running statistics; call model.eval() first")
    modules = dict(made.named_modules())
    for node in list(made.graph.nodes):
        if node.op != "call_module" or not node.args or getattr(node.args[0], "op", None) != "call_module":
            continue
        before = node.args[0]
        conv, norm = modules[before.target], modules[node.target]
        uses = sum(n.target == before.target for n in made.graph.find_nodes(op="call_module"))
        if (type(conv), type(norm)) not in _PAIRS or len(before.users) > 1 or uses > 1 or norm.running_mean is None:
            continue
        fused = fusion.fuse_conv_bn_eval(conv, norm)
        made.add_submodule(before.target, fused)
        modules[before.target] = fused
        node.replace_all_uses_with(before)
        made.graph.erase_node(node)
    made.delete_all_unused_submodules()
    made.recompile()
    return made


def remove_dropout(model):
    """The model without its dropouts."""
    made = symbolic_trace(model)
    for node in made.graph.find_nodes(op="call_module"):
        if isinstance(made.get_submodule(node.target), nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            made.graph.erase_node(node)
    made.recompile()
    return made
