"""adjoin.cuda.graphs: graphs of the CUDA device under the name of PyTorch's module."""

from . import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]
