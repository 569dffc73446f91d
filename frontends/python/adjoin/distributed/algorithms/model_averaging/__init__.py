"""adjoin.distributed.algorithms.model_averaging: processes that step alone, and take the mean of their parameters now and then."""
