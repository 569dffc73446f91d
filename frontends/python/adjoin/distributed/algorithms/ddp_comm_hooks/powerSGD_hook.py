"""adjoin.distributed.algorithms.ddp_comm_hooks.powerSGD_hook: gradients moved as two thin matrices each (PowerSGD, Vogels et al. 2019).

A matrix M is sent as P = M Q, made orthonormal, and Q = Mᵀ P; the mean of all processes is P Qᵀ. What a process's gradient loses by that
it adds to its next one, and the next step begins with this one's Q, so that few columns are enough.
"""

import logging
import math

import adjoin

from .... import distributed as dist
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

logger = logging.getLogger(__name__)


class PowerSGDState:
    """What the hooks keep from step to step. It can be pickled, so that a run goes on as it was; the group is then the default one.

    The first ``start_powerSGD_iter`` steps are reduced whole. A matrix of n x m elements is sent as ``matrix_approximation_rank`` columns
    if these are fewer by ``min_compression_rate``. ``orthogonalization_epsilon`` is added to the length of each column.
    """

    def __init__(self, process_group, matrix_approximation_rank=1, start_powerSGD_iter=1_000, min_compression_rate=2,
                 use_error_feedback=True, warm_start=True, orthogonalization_epsilon=0, random_seed=0,
                 compression_stats_logging_frequency=10_000, batch_tensors_with_same_shape=False):  # fmt: skip
        if matrix_approximation_rank < 1:
            raise ValueError(
                f"PowerSGDState: matrix_approximation_rank is {matrix_approximation_rank}; wanted is 1 or more"
            )
        self.process_group = process_group
        self.matrix_approximation_rank, self.start_powerSGD_iter = matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate, self.use_error_feedback = min_compression_rate, use_error_feedback
        self.warm_start, self.orthogonalization_epsilon = warm_start, orthogonalization_epsilon
        self.random_seed, self.batch_tensors_with_same_shape = random_seed, batch_tensors_with_same_shape
        self.compression_stats_logging_frequency = self.next_stats_report = max(1, compression_stats_logging_frequency)
        self.error_dict, self.p_memory_dict, self.q_memory_dict = {}, {}, {}  # of each bucket, by its index
        self.iter = self.total_numel_before_compression = self.total_numel_after_compression = 0

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "process_group"}

    def __setstate__(self, state):
        vars(self).update(state, process_group=None)

    def maybe_increase_iter(self, bucket):
        """Counts a step with its last bucket."""
        self.iter += bucket.is_last()

    def compression_stats(self):
        """(how many times fewer elements were sent, how many there were, how many were sent)."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0, before, after)

    def _count(self, bucket, sent):
        self.total_numel_before_compression += bucket.buffer().numel()
        self.total_numel_after_compression += sent
        if bucket.is_last() and self.iter >= self.next_stats_report:
            logger.info("PowerSGD: %.1f times less was sent: %d elements as %d", *self.compression_stats())
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency


def powerSGD_hook(state, bucket):
    """Each gradient with two dimensions or more as a matrix, where that saves enough; the others are reduced as they are."""
    if state.iter < state.start_powerSGD_iter:
        return _whole(state, bucket)
    flat = bucket.buffer()
    given = _with_error(state, bucket, flat)
    stacks, others = {}, []
    for i, t in enumerate(bucket.gradients()):
        matrix = t.reshape(t.shape[0], -1) if t.dim() > 1 else t
        if t.dim() > 1 and _is_worth_it(state, *matrix.shape):
            stacks.setdefault((*matrix.shape, 0 if state.batch_tensors_with_same_shape else i), []).append(matrix)
        else:
            others.append(t)
    thin = _Thin(state, bucket, [[*several] for several in stacks.values()])
    together = adjoin.cat([t.reshape(-1) for t in others]) if others else None
    if together is not None:
        moved = dist.all_reduce(together.div_(_size(state)), group=state.process_group, async_op=True)
    first = thin.send_columns()
    state._count(bucket, thin.sent + sum(t.numel() for t in others))
    state.maybe_increase_iter(bucket)

    def finish(_):
        thin.receive()
        if together is not None:
            moved.wait()
            for t, mean in zip(others, together.split([t.numel() for t in others]), strict=True):
                t.copy_(mean.reshape(t.shape))
        _note_error(state, bucket, given, flat)
        return flat

    return first.then(finish)


def batched_powerSGD_hook(state, bucket):
    """The whole bucket as one square matrix: faster, and farther from the mean than a matrix for each gradient."""
    if state.iter < state.start_powerSGD_iter:
        return _whole(state, bucket)
    flat = bucket.buffer()
    given = _with_error(state, bucket, flat)
    side = math.ceil(math.sqrt(flat.numel()))
    square = adjoin.zeros(side * side, dtype=flat.dtype, device=flat.device)
    square[: flat.numel()].copy_(flat)
    thin = _Thin(state, bucket, [[square.reshape(side, side)]])
    first = thin.send_columns()
    state._count(bucket, thin.sent)
    state.maybe_increase_iter(bucket)

    def finish(_):
        thin.receive()
        flat.copy_(square[: flat.numel()])
        _note_error(state, bucket, given, flat)
        return flat

    return first.then(finish)


def _whole(state, bucket):
    state.maybe_increase_iter(bucket)
    return allreduce_hook(state.process_group, bucket)


def _size(state):
    return dist.get_world_size(state.process_group)


def _is_worth_it(state, rows, columns):
    return (rows + columns) * state.matrix_approximation_rank * state.min_compression_rate < rows * columns


def _with_error(state, bucket, flat):
    """Adds what was lost before; what is to be sent, where it is compared with what was."""
    if not state.use_error_feedback:
        return None
    lost = state.error_dict.get(bucket.index())
    if lost is not None:
        flat.add_(lost)
    return flat.clone()


def _note_error(state, bucket, given, flat):
    if given is not None:
        state.error_dict[bucket.index()] = given.sub_(flat)


class _Thin:
    """The matrices of a bucket as thin ones; those of a list have one shape and are multiplied together."""

    def __init__(self, state, bucket, lists):
        self.state, self.lists = state, lists
        self.stacks = [adjoin.stack(several) if len(several) > 1 else several[0].unsqueeze(0) for several in lists]
        ranks = [min(*m.shape[1:], state.matrix_approximation_rank) for m in self.stacks]
        here, like = bucket.index(), bucket.buffer()
        begins_with = state.q_memory_dict.get(here) if state.warm_start else None
        shapes = [[(m.shape[0], m.shape[dim], r) for m, r in zip(self.stacks, ranks, strict=True)] for dim in (1, 2)]
        counts = [sum(map(math.prod, several)) for several in shapes]
        self.sent = sum(counts)
        if begins_with is None:  # every process draws the same
            generator = adjoin.Generator().manual_seed(hash((state.random_seed, state.iter, here)) % 2**63)
            begins_with = adjoin.randn(counts[1], generator=generator).to(like.device, like.dtype)
        self.q_memory = state.q_memory_dict[here] = begins_with
        self.p_memory = state.p_memory_dict[here] = adjoin.empty(counts[0], dtype=like.dtype, device=like.device)
        self.ps, self.qs = _cut(self.p_memory, shapes[0]), _cut(self.q_memory, shapes[1])

    def _reduce(self, memory):
        return dist.all_reduce(memory, group=self.state.process_group, async_op=True)

    def send_columns(self):
        """A future: the sum of all processes' columns."""
        for matrix, p, q in zip(self.stacks, self.ps, self.qs, strict=True):
            _orthonormal(q, self.state.orthogonalization_epsilon)
            p.copy_(matrix @ q)
        return self._reduce(self.p_memory).get_future()

    def receive(self):
        """The columns are there: sends the rest, and puts the mean into the matrices."""
        for matrix, p, q in zip(self.stacks, self.ps, self.qs, strict=True):
            _orthonormal(p, self.state.orthogonalization_epsilon)
            q.copy_(matrix.mT @ p)
        self.q_memory.div_(_size(self.state))
        self._reduce(self.q_memory).wait()
        for several, p, q in zip(self.lists, self.ps, self.qs, strict=True):
            for place, mean in zip(several, p @ q.mT, strict=True):
                place.copy_(mean)


def _cut(memory, shapes):
    """Views of a flat tensor, one behind the other."""
    parts = memory.split([math.prod(shape) for shape in shapes]) if shapes else []
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _orthonormal(matrices, epsilon):
    """Makes the columns of each matrix orthonormal, in place; one of zeros stays."""
    if matrices.shape[2] > 2 and not epsilon and matrices.dtype in (adjoin.float32, adjoin.float64):
        matrices.copy_(adjoin.linalg.qr(matrices)[0])
        return
    for i in range(matrices.shape[2]):
        column = matrices[:, :, i : i + 1]
        length = adjoin.linalg.vector_norm(column, dim=1, keepdim=True) + epsilon
        column.div_(length.masked_fill(length == 0, 1))
        rest = matrices[:, :, i + 1 :]
        rest.sub_((column * rest).sum(1, keepdim=True) * column)
