"""adjoin.distributed.pipelining._schedules: runs the stages of a process over the parts of a batch, in one of several orders."""

import adjoin

from . import _orders
from ._wires import BACKWARD, FORWARD, Wires


def _chunks(value, parts):
    """A tensor's parts along its first dimension; other values for each."""
    if not isinstance(value, adjoin.Tensor):
        return [value] * parts
    if value.shape[0] < parts:
        raise ValueError(f"step: a batch of {value.shape[0]} makes no {parts} parts")
    return list(adjoin.tensor_split(value, parts))


class _Schedule:
    """Runs the stages of this process over the parts of a batch."""

    order, place = None, staticmethod(_orders.around)

    def __init__(self, stage, n_microbatches, loss_fn=None, args_chunk_spec=None, kwargs_chunk_spec=None, output_merge_spec=None,
                 scale_grads=True):  # fmt: skip
        if args_chunk_spec is not None or kwargs_chunk_spec is not None or output_merge_spec is not None:
            raise NotImplementedError(f"{type(self).__name__}: batches are cut along dimension 0; leave the specs out")
        self.stages = list(stage) if isinstance(stage, (list, tuple)) else [stage]
        one = self.stages[0]
        self.parts, self.loss_fn, self.scaled = n_microbatches, loss_fn, scale_grads
        self.rank, self.size, self.count = one.group_rank, one.group_size, one.num_stages
        self.stages.sort(key=lambda s: s.stage_index)
        if self.count != self.size * len(self.stages):
            raise ValueError(
                f"{type(self).__name__}: {self.count} stages on {self.size} processes; {len(self.stages)} of them are given here"
            )
        self.where = [self.place(s, self.size) for s in range(self.count)]
        for stage in self.stages:
            if self.where[stage.stage_index] != self.rank:
                raise ValueError(
                    f"{type(self).__name__}: stage {stage.stage_index} belongs on rank {self.where[stage.stage_index]} of {self.size}, "
                    f"this is rank {self.rank}: {self.place.__doc__.splitlines()[0][0].lower()}{self.place.__doc__.splitlines()[0][1:-1]}"
                )
        self.wires, self.orders = Wires(one.group, self.where), {}
        for stage in self.stages:
            stage.halves = any(what == "W" for what, _, _ in self._steps(self.rank))

    def _steps(self, rank):
        if rank not in self.orders:
            self.orders[rank] = self.order(rank, self.size, len(self.stages), self.parts)
        return self.orders[rank]

    def _sent(self, way, sender, train):
        """The keys that another process sends to this one that way, in its order."""
        kinds, by = ("F", 1) if way == FORWARD else ("BI", -1)
        theirs = [s for s in range(self.count) if self.where[s] == sender]
        for what, chunk, part in self._steps(sender):
            to = theirs[chunk] + by
            if what in kinds and 0 <= to < self.count and self.where[to] == self.rank and (train or what == "F"):
                yield to, part

    def step(self, *args, target=None, losses=None, **kwargs):
        """A step with the whole batch: its inputs in the first stage's process, ``target`` in the last one's, ``losses`` a list for
        the parts' losses. The outputs, in the last stage's process."""
        return self._run(True, args, kwargs, target, losses)

    def eval(self, *args, target=None, losses=None, **kwargs):
        """Forward alone."""
        with adjoin.no_grad():
            return self._run(False, args, kwargs, target, losses)

    def _run(self, train, args, kwargs, target, losses):
        if train and self.loss_fn is None:
            raise ValueError(f"{type(self).__name__}: step() wants loss_fn; eval() runs forward alone")
        inputs = list(zip(*(_chunks(a, self.parts) for a in args), strict=True)) or [()] * self.parts
        words = [{} for _ in range(self.parts)]
        for key, value in kwargs.items():
            for word, part in zip(words, _chunks(value, self.parts), strict=True):
                word[key] = part
        targets = _chunks(target, self.parts)
        came = {(way, r): self._sent(way, r, train) for way in (FORWARD, BACKWARD) for r in set(self.where)}
        outputs, found = [None] * self.parts, [None] * self.parts
        remaining = [self.parts] * len(self.stages)
        for what, chunk, part in self._steps(self.rank):
            stage = self.stages[chunk]
            key = stage.stage_index, part
            if what == "F":
                given = inputs[part] if stage.is_first else self.wires.receive(FORWARD, key, came, stage.device)
                output, results = stage.forward_part(part, given, words[part])
                if stage.is_last:
                    outputs[part] = output
                    found[part] = (
                        None if self.loss_fn is None or target is None else self.loss_fn(output, targets[part])
                    )
                else:
                    self.wires.send(FORWARD, (stage.stage_index + 1, part), results)
            elif train and what == "W":
                stage.backward_weights(part)
            elif train:
                grads = None if stage.is_last else self.wires.receive(BACKWARD, key, came, stage.device)
                remaining[chunk] -= 1
                backward = stage.backward_part if what == "B" else stage.backward_inputs
                back = backward(part, found[part] if stage.is_last else None, grads, not remaining[chunk])
                if back is not None:
                    self.wires.send(BACKWARD, (stage.stage_index - 1, part), back)
        self.wires.settle()
        for stage in self.stages:
            stage.held.clear()
            stage.later.clear()
            if train and self.scaled:
                stage.scale_grads(self.parts)
        if losses is not None:
            losses[:] = [x.detach() for x in found if x is not None]
        return _merged(outputs) if any(s.is_last for s in self.stages) else None


def _merged(outputs):
    if isinstance(outputs[0], (tuple, list)):
        return type(outputs[0])(_merged(list(several)) for several in zip(*outputs, strict=True))
    return adjoin.cat([o.detach() for o in outputs])


class PipelineScheduleSingle(_Schedule):
    """A schedule of one stage on each process."""


class PipelineScheduleMulti(_Schedule):
    """A schedule of several stages on each process."""


class ScheduleGPipe(PipelineScheduleSingle):
    """All parts forward, then all backward."""

    order = staticmethod(_orders.gpipe)


class Schedule1F1B(PipelineScheduleSingle):
    """A part goes backward as soon as it has been through all stages, so that few are held."""

    order = staticmethod(_orders.one_forward_one_backward)


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """The same with a list of stages on each process: less waiting at the ends of a step."""

    order = staticmethod(_orders.interleaved)


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All parts through a stage before the next one: parameters of a stage that are gathered are so once."""

    order = staticmethod(_orders.breadth_first)


class ScheduleInterleavedZeroBubble(PipelineScheduleMulti):
    """Interleaved, gradients of weights where a process would wait."""

    order = staticmethod(_orders.interleaved_halves)


class ScheduleZBVZeroBubble(PipelineScheduleMulti):
    """Two stages on each process, there and back: stage s and the s-th from the end; gradients of weights where a process would wait."""

    order, place = staticmethod(_orders.v_halves), staticmethod(_orders.there_and_back)


class ScheduleDualPipeV(PipelineScheduleMulti):
    """Two stages on each process, there and back; a part goes forward through one beside another's way back through the other."""

    order, place = staticmethod(_orders.dual_v), staticmethod(_orders.there_and_back)


def get_schedule_class(schedule_name):
    """The schedule of that name, with or without "Schedule", in any case."""
    every = [c for base in (PipelineScheduleSingle, PipelineScheduleMulti) for c in (*base.__subclasses__(), base)]
    names = {c.__name__.lower().removeprefix("schedule"): c for c in every}
    found = names.get(schedule_name.lower().removeprefix("schedule"))
    if found is None:
        raise ValueError(
            f"there is no schedule {schedule_name!r}; there are {', '.join(c.__name__ for c in names.values())}"
        )
    return found
