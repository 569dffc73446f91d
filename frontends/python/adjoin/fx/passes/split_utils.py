"""adjoin.fx.passes.split_utils: PyTorch's place of split_by_tags."""

from .split_module import split_module

__all__ = ["split_by_tags"]


def split_by_tags(gm, tags, return_fqn_mapping=False, return_tuple=False, GraphModuleCls=None):
    """The parts of a graph by ``node.tag``, as modules that are called by their tags, in their order."""
    if return_fqn_mapping or return_tuple or GraphModuleCls is not None:
        raise NotImplementedError(
            "split_by_tags: give gm and tags alone; split_module(qualname_map={}) gives a mapping"
        )
    for node in gm.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output") and getattr(node, "tag", None) not in tags:
            raise AssertionError(
                f"split_by_tags: node {node} has the tag {getattr(node, 'tag', None)!r}; it must be one of {tags}"
            )
    made = split_module(gm, gm, lambda node: tags.index(node.tag))
    for i, tag in enumerate(tags):
        if hasattr(made, f"submod_{i}"):
            made.add_module(tag, getattr(made, f"submod_{i}"))
            delattr(made, f"submod_{i}")
            for node in made.graph.find_nodes(op="call_module", target=f"submod_{i}"):
                node.target = tag
    made.recompile()
    return made
