"""adjoin.fx.passes.split_utils: PyTorch's place of split_by_tags."""

from ..graph_module import GraphModule
from .split_module import split_module

__all__ = ["split_by_tags"]


def split_by_tags(gm, tags, return_fqn_mapping=False, return_tuple=False, GraphModuleCls=GraphModule):
    """The parts of a graph by ``node.tag``, as modules that are called by their tags, in their order.

    ``return_fqn_mapping``: also a dictionary from the paths of modules and tensors to where they stand now. ``return_tuple``: a
    part that gives one value gives a tuple of it. ``GraphModuleCls`` is the class of what is given.
    """
    for node in gm.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output") and getattr(node, "tag", None) not in tags:
            raise AssertionError(
                f"split_by_tags: node {node} has the tag {getattr(node, 'tag', None)!r}; it must be one of {tags}"
            )
    paths = {}
    made = split_module(gm, gm, lambda node: tags.index(node.tag), paths, tuple_return=return_tuple)
    parts = {f"submod_{i}": tag for i, tag in enumerate(tags) if hasattr(made, f"submod_{i}")}
    for name, tag in sorted(parts.items(), key=lambda item: tags.index(item[1])):
        made.add_module(tag, getattr(made, name))
        delattr(made, name)
        for node in made.graph.find_nodes(op="call_module", target=name):
            node.target = tag
    made.recompile()
    if GraphModuleCls is not GraphModule:
        made = GraphModuleCls(made, made.graph)
    if not return_fqn_mapping:
        return made
    where = {}
    for new, old in paths.items():
        name, _, rest = new.partition(".")
        where[old] = f"{parts[name]}.{rest}"
    return made, where
