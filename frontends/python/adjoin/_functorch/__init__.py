"""adjoin._functorch: paths of PyTorch's transforms of functions below func, for libraries that reach there."""
