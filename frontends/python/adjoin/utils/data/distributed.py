"""adjoin.utils.data.distributed: each process its own part of a data set."""

import math

import adjoin

from .sampler import Sampler


class DistributedSampler(Sampler):
    """Every ``num_replicas``-th index from ``rank`` on, of a permutation that ``seed + epoch``
    fixes.

    Without ``drop_last`` the first indices are repeated until the parts are equally long.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None or rank is None:
            from ... import distributed

            if not distributed.is_initialized():
                raise RuntimeError(
                    "DistributedSampler: num_replicas and rank are not given and there is no process group to ask; "
                    "pass both, or call init_process_group first"
                )
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        share = len(dataset) / num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        count = len(self.dataset)
        indices = list(range(count))
        if self.shuffle:
            generator = adjoin.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = adjoin.randperm(count, generator=generator).tolist()
        if not self.drop_last and indices:
            times = math.ceil(self.total_size / count)
            indices = (indices * times)[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Sets the epoch, without which every one has the same order."""
        self.epoch = epoch
