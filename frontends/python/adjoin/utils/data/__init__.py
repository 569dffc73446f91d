"""adjoin.utils.data: data sets, samplers and the loader that makes batches of them."""

import importlib

from ..._hints import getattr_of
from . import distributed  # noqa: F401
from .collate import default_collate, default_convert  # noqa: F401
from .dataloader import DataLoader  # noqa: F401
from .dataset import (  # noqa: F401
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .datapipes._decorator import (  # noqa: F401
    argument_validation,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from .datapipes.datapipe import (  # noqa: F401
    DataChunk,
    DFIterDataPipe,
    IterDataPipe,
    MapDataPipe,
)
from .distributed import DistributedSampler  # noqa: F401
from .sampler import (  # noqa: F401
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def get_worker_info():
    """What a worker process knows of itself; None in the main process."""
    import sys

    worker = sys.modules.get(__name__ + "._worker")
    return worker.get_worker_info() if worker else None


_absent = getattr_of(__name__)


def __getattr__(name):
    if name == "_utils":
        return importlib.import_module("._utils", __package__)
    return _absent(name)
