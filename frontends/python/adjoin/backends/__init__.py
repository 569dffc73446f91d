"""adjoin.backends: what the libraries behind the devices are and can do."""

from . import blas, cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum, quantized  # noqa: F401
