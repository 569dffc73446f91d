"""adjoin._inductor.decomposition: formulas that packages give for their ops."""

decompositions = {}  # op -> function


def register_decomposition(ops):
    """A decorator: the function stands in ``decompositions`` for the ops. compile() runs the ops themselves: their own bodies count."""

    def register(function):
        for op in ops if isinstance(ops, (list, tuple)) else [ops]:
            decompositions[op] = function
        return function

    return register
