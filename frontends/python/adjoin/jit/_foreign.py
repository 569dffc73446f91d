"""adjoin.jit._foreign: which reader an archive is for: our own, TorchScript's, torch.export's."""

import os
import zipfile


def load(f, map_location=None):
    """The module of an archive that is not our own; None if it is."""
    where = f.tell() if hasattr(f, "read") and hasattr(f, "seek") else None
    if hasattr(f, "read") and where is None:
        return None
    try:
        zipped = zipfile.ZipFile(f if hasattr(f, "read") else os.fspath(f))
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        if where is not None:
            f.seek(where)
        return None  # our own reader says what is wrong with it
    with zipped:
        names = zipped.namelist()
        from . import _pt2, _torchscript

        made = None
        if _torchscript.is_archive(names):
            made = _torchscript.load(zipped, map_location)
        elif _pt2.is_archive(names):
            made = _pt2.read(zipped).to(map_location) if map_location is not None else _pt2.read(zipped)
    if where is not None:
        f.seek(where)
    return made
