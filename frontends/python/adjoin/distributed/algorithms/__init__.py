"""adjoin.distributed.algorithms: ways to train with several processes."""
