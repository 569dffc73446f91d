"""adjoin.fx.tensor_type: marks of annotations; nothing checks them."""

__all__ = ["Dyn", "TensorType"]


class TensorType:
    """A tensor of these sizes; ``Dyn`` stands for one that is not known."""

    def __init__(self, dim):
        self.__origin__, self.__args__ = TensorType, dim

    def __repr__(self):
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other):
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self):
        return hash(tuple(self.__args__))


class _Dyn:
    def __repr__(self):
        return "Dyn"


Dyn = _Dyn()
