"""adjoin.fx.passes.graph_drawer: Adjoin draws no pictures of graphs."""

__all__ = ["FxGraphDrawer"]


class FxGraphDrawer:
    """Raises: pictures need packages that Adjoin does not use."""

    def __init__(self, graph_module, name, *args, **kwargs):
        raise NotImplementedError(
            f"FxGraphDrawer({name!r}): Adjoin draws no pictures; graph_module.graph.print_tabular() prints a table, "
            "graph_module.print_readable() the code"
        )
