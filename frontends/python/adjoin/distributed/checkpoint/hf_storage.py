"""adjoin.distributed.checkpoint.hf_storage: names that packages import; they raise when they are used."""

from . import _refuse

HuggingFaceStorageReader, HuggingFaceStorageWriter = map(
    _refuse, ("HuggingFaceStorageReader", "HuggingFaceStorageWriter")
)
