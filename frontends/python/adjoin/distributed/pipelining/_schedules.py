"""adjoin.distributed.pipelining._schedules: in which order a process takes the parts of a batch forward and backward."""

import adjoin

from ._wires import BACKWARD, FORWARD, Wires


def gpipe(rank, size, chunks, parts):
    """All forward, then all backward."""
    return [("F", 0, p) for p in range(parts)] + [("B", 0, p) for p in range(parts)]


def one_forward_one_backward(rank, size, chunks, parts):
    """As few parts are held as keep all processes at work: each goes backward as soon as it can."""
    first = min(parts, size - rank)
    steps = [("F", 0, p) for p in range(first)]
    for p in range(parts - first):
        steps += [("B", 0, p), ("F", 0, first + p)]
    return steps + [("B", 0, p) for p in range(parts - first, parts)]


def interleaved(rank, size, chunks, parts):
    """The same with several stages on each process, of which a round of parts takes one after the other."""
    if parts % size:
        raise ValueError(
            f"ScheduleInterleaved1F1B: {parts} parts of a batch for {size} processes; their number must divide the parts"
        )
    total = parts * chunks

    def forward(k):
        return "F", (k // size) % chunks, (k // (size * chunks)) * size + k % size

    def backward(k):
        return "B", chunks - 1 - (k // size) % chunks, (k // (size * chunks)) * size + k % size

    first = min(total, (size - rank - 1) * 2 + (chunks - 1) * size + 1)
    steps = [forward(k) for k in range(first)]
    for k in range(total - first):
        steps += [backward(k), forward(first + k)]
    return steps + [backward(k) for k in range(total - first, total)]


def _chunks(value, parts):
    """A tensor's parts along its first dimension; other values for each."""
    if not isinstance(value, adjoin.Tensor):
        return [value] * parts
    if value.shape[0] < parts:
        raise ValueError(f"step: a batch of {value.shape[0]} makes no {parts} parts")
    return list(adjoin.tensor_split(value, parts))


class _Schedule:
    """Runs the stages of this process over the parts of a batch."""

    order = None

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
        self.wires = Wires(one.group)

    def _steps(self, rank):
        return type(self).order(rank, self.size, len(self.stages), self.parts)

    def _sent(self, way, train):
        """The keys that the neighbour sends this way, in its order."""
        neighbour = (self.rank - 1) % self.size if way == FORWARD else (self.rank + 1) % self.size
        kind, by = ("F", 1) if way == FORWARD else ("B", -1)
        for what, chunk, part in self._steps(neighbour):
            to = chunk * self.size + neighbour + by
            if what == kind and 0 <= to < self.count and (train or kind == "F"):
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
        came = {way: self._sent(way, train) for way in (FORWARD, BACKWARD)}
        outputs, found = [None] * self.parts, [None] * self.parts
        remaining = [self.parts] * len(self.stages)
        for what, chunk, part in self._steps(self.rank):
            stage = self.stages[chunk]
            key = stage.stage_index, part
            if what == "F":
                given = (
                    inputs[part] if stage.is_first else self.wires.receive(FORWARD, key, came[FORWARD], stage.device)
                )
                output, results = stage.forward_part(part, given, words[part])
                if stage.is_last:
                    outputs[part] = output
                    found[part] = (
                        None if self.loss_fn is None or target is None else self.loss_fn(output, targets[part])
                    )
                else:
                    self.wires.send(FORWARD, (stage.stage_index + 1, part), results)
            elif train:
                grads = None if stage.is_last else self.wires.receive(BACKWARD, key, came[BACKWARD], stage.device)
                remaining[chunk] -= 1
                back = stage.backward_part(part, found[part] if stage.is_last else None, grads, not remaining[chunk])
                if back is not None:
                    self.wires.send(BACKWARD, (stage.stage_index - 1, part), back)
        self.wires.settle()
        for stage in self.stages:
            stage.held.clear()
            if train and self.scaled:
                stage.scale_grads(self.parts)
        if losses is not None:
            losses[:] = [x.detach() for x in found if x is not None]
        return _merged(outputs) if self.stages[-1].is_last else None


def _merged(outputs):
    if isinstance(outputs[0], (tuple, list)):
        return type(outputs[0])(_merged(list(several)) for several in zip(*outputs, strict=True))
    return adjoin.cat([o.detach() for o in outputs])


class ScheduleGPipe(_Schedule):
    """All parts forward, then all backward."""

    order = staticmethod(gpipe)


class Schedule1F1B(_Schedule):
    """A part goes backward as soon as it has been through all stages, so that few are held."""

    order = staticmethod(one_forward_one_backward)


class ScheduleInterleaved1F1B(_Schedule):
    """The same with a list of stages on each process: less waiting at the ends of a step."""

    order = staticmethod(interleaved)
