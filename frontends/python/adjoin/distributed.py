"""adjoin.distributed: what programs ask before they make process groups, which are not there yet."""


def is_available():
    """False: there are no process groups."""
    return False


def is_initialized():
    """False: there are no process groups."""
    return False


def is_nccl_available():
    """False."""
    return False


is_gloo_available = is_mpi_available = is_torchelastic_launched = is_nccl_available
