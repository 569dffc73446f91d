"""adjoin.distributed.checkpoint.api: what is raised when a save or a load fails in one process or several."""


class CheckpointException(RuntimeError):
    """The errors of all processes, by rank; every process raises it."""

    def __init__(self, msg, failures):
        self.failures = failures
        told = "; ".join(f"rank {rank}: {type(e).__name__}: {e}" for rank, e in sorted(failures.items()))
        super().__init__(f"{msg}: {told}")
