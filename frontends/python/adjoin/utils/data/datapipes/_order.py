"""adjoin.utils.data.datapipes._order: which examples of a stream come, in which order and in which groups."""

import collections
import enum
import random

import adjoin

from ..sampler import SequentialSampler
from ._decorator import functional_datapipe
from .datapipe import DataChunk, IterDataPipe


@functional_datapipe("shuffle")
class Shuffler(IterDataPipe):
    """Each next example is drawn from ``buffer_size`` that wait; ``unbatch_level``: from the items of batches.

    The seed is drawn from Adjoin's generator at each start, unless set_seed() has said it; set_shuffle(False) leaves the order as it is.
    """

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0):
        if buffer_size <= 0:
            raise AssertionError(f"shuffle: buffer_size should be larger than 0, it is {buffer_size}")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size, self._enabled, self._seed, self._rng = buffer_size, True, None, random.Random()

    def set_shuffle(self, shuffle=True):
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        self._seed = seed
        return self

    def reset(self):
        if self._enabled:
            self._rng.seed(_seed() if self._seed is None else self._seed)
            self._seed = None

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        waiting, draw = [], self._rng.randint
        for example in self.datapipe:
            if len(waiting) < self.buffer_size:
                waiting.append(example)
                continue
            place = draw(0, len(waiting) - 1)
            given, waiting[place] = waiting[place], example
            yield given
        while waiting:
            yield waiting.pop(draw(0, len(waiting) - 1))

    def __len__(self):
        return len(self.datapipe)


def _seed():
    return int(adjoin.empty((), dtype=adjoin.int64).random_().item())


class Sampler(IterDataPipe):
    """What a sampler gives for a pipe that knows its length."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler = sampler(*(sampler_args or ()), data_source=datapipe, **(sampler_kwargs or {}))

    def __iter__(self):
        yield from self.sampler

    def __len__(self):
        return len(self.sampler)


class SHARDING_PRIORITIES(enum.IntEnum):
    """Who divides the data: the lower number divides first."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilter(IterDataPipe):
    """Every n-th example, once apply_sharding() has said among how many readers this is which; before it all of them."""

    def __init__(self, source_datapipe, sharding_group_filter=None):
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups, self.num_of_instances, self.instance_id = {}, 1, 0

    def apply_sharding(self, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT):
        """This is reader ``instance_id`` of ``num_of_instances`` in the group; readers of several groups multiply."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        default = SHARDING_PRIORITIES.DEFAULT
        if any((group == default) != (sharding_group == default) for group in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups):
            if self.sharding_group_filter is None or group == self.sharding_group_filter:
                count, number = self.groups[group]
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def is_shardable(self):
        return True

    def __iter__(self):
        for i, example in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield example

    def __len__(self):
        count = len(self.source_datapipe)
        return count // self.num_of_instances + (self.instance_id < count % self.num_of_instances)


@functional_datapipe("groupby")
class Grouper(IterDataPipe):
    """Examples of one key together: a group goes out when it has ``group_size``, the largest when ``buffer_size`` examples wait, the rest
    at the end. One smaller than ``guaranteed_group_size`` must not go out before the end: it is dropped with ``drop_remaining``."""

    def __init__(self, datapipe, group_key_fn, *, keep_key=False, buffer_size=10000, group_size=None, guaranteed_group_size=None,
                 drop_remaining=False):  # fmt: skip
        if group_size is not None and not 0 < group_size <= (buffer_size or group_size):
            raise AssertionError(f"groupby: group_size is {group_size}, wanted is 1 up to buffer_size ({buffer_size})")
        if guaranteed_group_size is not None and not (group_size and 0 < guaranteed_group_size <= group_size):
            raise AssertionError(
                f"groupby: guaranteed_group_size is {guaranteed_group_size}, wanted is 1 up to group_size ({group_size})"
            )
        self.datapipe, self.group_key_fn, self.keep_key, self.buffer_size = (
            datapipe,
            group_key_fn,
            keep_key,
            buffer_size,
        )
        self.group_size, self.drop_remaining, self.wrapper_class = group_size, drop_remaining, DataChunk
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size

    def __iter__(self):
        groups, count = collections.defaultdict(list), 0
        for example in self.datapipe:
            key = self.group_key_fn(example)
            groups[key].append(example)
            count += 1
            if len(groups[key]) == self.group_size:
                count -= self.group_size
                yield self._made(key, groups.pop(key))
            if count == self.buffer_size:
                key = max(groups, key=lambda k: len(groups[k]))
                group = groups.pop(key)
                count -= len(group)
                if self.guaranteed_group_size is None or len(group) >= self.guaranteed_group_size:
                    yield self._made(key, group)
                elif not self.drop_remaining:
                    raise RuntimeError(
                        f"groupby: Failed to group items: {count + len(group)} examples wait, and the largest group ({key!r}) has {len(group)}"
                    )
        for key in list(groups):
            yield self._made(key, groups.pop(key))

    def _made(self, key, group):
        made = self.wrapper_class(group)
        return (key, made) if self.keep_key else made
