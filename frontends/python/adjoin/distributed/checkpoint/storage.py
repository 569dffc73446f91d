"""adjoin.distributed.checkpoint.storage: where checkpoints lie: a folder that all processes reach."""


class StorageWriter:
    """Writes pieces. FileSystemWriter is the one that is served."""


class StorageReader:
    """Reads pieces. FileSystemReader is the one that is served."""


def writer_of(storage, checkpoint_id):
    """The one that was given, or that of a folder."""
    from .filesystem import FileSystemWriter

    return _of(storage, checkpoint_id, FileSystemWriter, "storage_writer")


def reader_of(storage, checkpoint_id):
    """The one that was given, or that of a folder."""
    from .filesystem import FileSystemReader

    return _of(storage, checkpoint_id, FileSystemReader, "storage_reader")


def _of(storage, checkpoint_id, kind, word):
    if storage is None:
        if checkpoint_id is None:
            raise RuntimeError(f"checkpoint: pass checkpoint_id=FOLDER, or {word}={kind.__name__}(FOLDER)")
        return kind(checkpoint_id)
    if not isinstance(storage, kind):
        raise NotImplementedError(
            f"checkpoint: {word} is a {type(storage).__name__}; a {kind.__name__} over a folder is what is served"
        )
    if checkpoint_id is not None:
        import pathlib

        storage.path = pathlib.Path(checkpoint_id)
    return storage
