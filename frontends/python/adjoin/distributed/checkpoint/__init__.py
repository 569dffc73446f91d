"""adjoin.distributed.checkpoint: files that several processes write together: not served; names say what to use."""


def _refuse(name):
    def refuse(*args, **kwargs):
        """Raises, and says what to use."""
        raise NotImplementedError(
            f"{name}: checkpoints in parts are not served; each process has its parameters whole: adjoin.save on rank 0, a barrier, "
            "adjoin.load on all"
        )

    refuse.__name__ = name
    return refuse


save, load, async_save = map(_refuse, ("save", "load", "async_save"))
