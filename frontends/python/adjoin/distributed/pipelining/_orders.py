"""adjoin.distributed.pipelining._orders: in which order a process takes the parts of a batch through its stages.

An order is a list of (what, which of the process's stages, part of the batch): "F" is forward, "B" backward; "I" and "W" are the two halves
of "B": the gradients of the inputs, for which another process waits, and those of the weights, for which nobody does.
"""


def around(stage, size):
    """Stages go round the processes."""
    return stage % size


def there_and_back(stage, size):
    """Each process has two stages: the first of them in order, the second in reverse."""
    return stage if stage < size else 2 * size - 1 - stage


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


def breadth_first(rank, size, chunks, parts):
    """A stage takes all parts before the next one of the process does."""
    forward = [("F", c, p) for c in range(chunks) for p in range(parts)]
    return forward + [("B", c, p) for c in reversed(range(chunks)) for p in reversed(range(parts))]


def interleaved_halves(rank, size, chunks, parts):
    """As `interleaved`; weights wait until a process would be idle, on later processes for longer."""
    steps, waiting = [], []
    for what, chunk, part in interleaved(rank, size, chunks, parts):
        if what == "F":
            steps.append(("F", chunk, part))
            continue
        steps.append(("I", chunk, part))
        waiting.append(("W", chunk, part))
        if len(waiting) > rank:
            steps.append(waiting.pop(0))
    return steps + waiting


def v_halves(rank, size, chunks, parts):
    """There and back, what is most wanted first: the gradients of inputs, then forward, then weights. No process holds more than twice as
    many parts as there are processes, one place of them for its second stage, so that the oldest part always goes on."""
    last, most = 2 * size - 1, 2 * size
    done, steps = set(), [[] for _ in range(size)]
    forward, held, waiting = [[0, 0] for _ in range(size)], [0] * size, [[] for _ in range(size)]
    inputs = [[0, 0] for _ in range(size)]

    def ready(r):
        for chunk, stage in ((1, last - r), (0, r)):
            part = inputs[r][chunk]
            if part < forward[r][chunk] and (stage == last or ("I", stage + 1, part) in done):
                return "I", chunk, stage, part
        for chunk, stage in ((1, last - r), (0, r)):
            part = forward[r][chunk]
            if part < parts and held[r] < most - 1 + chunk and (not stage or ("F", stage - 1, part) in done):
                return "F", chunk, stage, part
        return ("W", *waiting[r][0]) if waiting[r] else None

    while any(len(s) < 6 * parts for s in steps):
        now = [(r, one) for r in range(size) if (one := ready(r)) is not None]
        for r, (what, chunk, stage, part) in now:
            steps[r].append((what, chunk, part))
            if what == "F":
                forward[r][chunk] += 1
                held[r] += 1
            elif what == "I":
                inputs[r][chunk] += 1
                waiting[r].append((chunk, stage, part))
            else:
                waiting[r].pop(0)
                held[r] -= 1
        done |= {(what, stage, part) for _, (what, _, stage, part) in now}
    return steps[rank]


def dual_v(rank, size, chunks, parts):
    """There and back, forward of one stage beside backward of the other (DualPipeV); halves only where a process would wait."""
    if parts < 2 * size:
        raise ValueError(
            f"ScheduleDualPipeV: {parts} parts of a batch for {size} processes; there must be {2 * size} at least"
        )
    steps, waiting = [], []
    went, back = [0, 0], [0, 0]

    def forward(chunk):
        steps.append(("F", chunk, went[chunk]))
        went[chunk] += 1

    def backward(chunk, halves=False):
        steps.append(("I" if halves else "B", chunk, back[chunk]))
        if halves:
            waiting.append(("W", chunk, back[chunk]))
        back[chunk] += 1

    def weights():
        steps.append(waiting.pop(0))

    after = size - rank - 1
    for _ in range(2 * after):
        forward(0)
    for _ in range(rank + 1):
        forward(0), forward(1)
    for _ in range(after):
        backward(1, True), weights(), forward(1)
    for _ in range(parts - 2 * size + rank + 1):
        forward(0), backward(1), forward(1), backward(0)
    for _ in range(after):
        backward(1), forward(1), backward(0)
    half = (rank + 1) // 2
    for i in range(rank + 1):
        backward(1, i > half or (i == half and rank % 2 == 1)), backward(0, i >= half)
    for _ in range(after):
        weights() if waiting else None
        backward(0, True)
    return steps + waiting
