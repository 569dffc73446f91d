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
        tails = {name.partition("/")[2] for name in zipped.namelist()}
        made = None
        if "constants.pkl" in tails and "data.pkl" in tails:
            from ._torchscript import load as read

            made = read(zipped)
        elif "archive_format" in tails or any(t.startswith("models/") and t.endswith(".json") for t in tails):
            from ._pt2 import read

            made = read(zipped)
    made = made if made is None or map_location is None else made.to(map_location)
    if where is not None:
        f.seek(where)
    return made
