"""adjoin.distributed.elastic: PyTorch's paths to what programs use of its launcher; `adjoin launch` starts processes."""
