"""adjoin.distributed.checkpoint.hf_storage: names that packages import; they raise when they are used."""


def _raising(name):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(
            f"{name} is not served; adjoin.safetensors reads and writes these files, dcp_to_torch_save makes one of a checkpoint"
        )

    return type(name, (), {"__init__": refuse, "__doc__": "Raises, and says what to use."})


HuggingFaceStorageReader, HuggingFaceStorageWriter = map(
    _raising, ("HuggingFaceStorageReader", "HuggingFaceStorageWriter")
)
