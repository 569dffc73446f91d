"""adjoin.distributed.fsdp: the classes of sharded training, for isinstance(): making one raises."""

_INSTEAD = "is not served; nn.parallel.DistributedDataParallel has the parameters whole in each process, and ZeroRedundancyOptimizer cuts the optimizer's state"


def _raising(name):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"{name} {_INSTEAD}")

    return type(name, (), {"__init__": refuse, "__doc__": f"{name} {_INSTEAD}."})


FullyShardedDataParallel = _raising("FullyShardedDataParallel")
FSDPModule = _raising("FSDPModule")
CPUOffloadPolicy = _raising("CPUOffloadPolicy")
MixedPrecisionPolicy = _raising("MixedPrecisionPolicy")


def fully_shard(module, **options):
    """Raises, and says what to use."""
    raise NotImplementedError(f"fully_shard {_INSTEAD}")
