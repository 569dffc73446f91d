"""adjoin.distributed.algorithms._checkpoint: modules whose inner results are computed again in backward."""
