"""tests/python/distributed/pipeline_test.py: stages on several processes train as the whole model does in one."""

import pytest

BODY = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.pipelining import _schedules
dist.init_process_group()
rank, n = dist.get_rank(), dist.get_world_size()

def layers():
    torch.manual_seed(0)
    made = [nn.Sequential(nn.Linear(6 if i == 0 else 5, 5), nn.Tanh()) for i in range(5)] + [nn.Linear(5, 4)]
    return [m.double() for m in made]
torch.manual_seed(1)
x, y = torch.randn(12, 6, dtype=torch.float64), torch.randn(12, 4, dtype=torch.float64)
loss_fn = nn.MSELoss()

def optimizer_of(params):
    return torch.optim.SGD(params, lr=0.1, momentum=0.9)
alone = nn.Sequential(*layers())
whole, want = optimizer_of(alone.parameters()), []
for _ in range(3):
    whole.zero_grad()
    out = alone(x)
    loss = loss_fn(out, y)
    loss.backward()
    whole.step()
    want.append(loss.item())

def run(schedule_of, chunks, parts):
    stages, count = [], n * chunks
    each = 6 // count
    for c in range(chunks):
        s = c * n + rank
        stages.append(PipelineStage(nn.Sequential(*layers()[s * each : (s + 1) * each]), s, count, "cpu"))
    schedule = schedule_of(stages if chunks > 1 else stages[0], parts, loss_fn=loss_fn)
    optimizer, most, got = optimizer_of([p for s in stages for p in s.submod.parameters()]), 0, []
    for _ in range(3):
        optimizer.zero_grad()
        losses = []
        real = stages[0].forward_part
        def counted(*args):
            nonlocal most
            made = real(*args)
            most = max(most, len(stages[0].held))
            return made
        stages[0].forward_part = counted
        result = schedule.step(*((x,) if rank == 0 else ()), target=y if rank == n - 1 else None, losses=losses)
        stages[0].forward_part = real
        optimizer.step()
        if rank == n - 1:
            got.append(torch.stack(losses).mean().item())
            assert len(losses) == parts and result.shape == (12, 4)
        else:
            assert result is None and losses == []
    if rank == n - 1:
        assert max(abs(a - b) for a, b in zip(got, want)) < 1e-12, (got, want)
        assert (result - out).abs().max() < 1e-12
    for s in stages:
        first = s.stage_index * each
        for a, b in zip(s.submod.parameters(), nn.Sequential(*list(alone)[first : first + each]).parameters()):
            assert (a - b).abs().max() < 1e-12
    shown = schedule.eval(*((x,) if rank == 0 else ()))
    if rank == n - 1:
        assert (shown - alone(x)).abs().max() < 1e-12
    return most
"""


@pytest.mark.parametrize("n", [2, 3])
def test_stages_have_the_curve_of_the_whole_model(good, n):
    body = (
        BODY
        + """
assert run(ScheduleGPipe, 1, 6) == 6
assert run(Schedule1F1B, 1, 6) == n - rank  # few parts are held
run(ScheduleInterleaved1F1B, 2 if n == 3 else 3, 6)
for call, words in (
    (lambda: PipelineStage(nn.Linear(1, 1), (rank + 1) % n, n), "stages go round the processes"),
    (lambda: run(ScheduleInterleaved1F1B, 2 if n == 3 else 3, 7), "must divide the parts"),
):
    try:
        call()
    except ValueError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
print("ok", rank)
"""
    )
    assert good(n, body) == [f"ok {r}" for r in range(n)]


def test_orders_are_complete_and_never_wait_for_each_other():
    """Every order runs to its end when a step waits for what it needs, whatever the numbers."""
    from adjoin.distributed.pipelining import _schedules

    for order, counts in (
        (_schedules.gpipe, (1,)),
        (_schedules.one_forward_one_backward, (1,)),
        (_schedules.interleaved, (1, 2, 3)),
    ):
        for size in (1, 2, 3, 4, 8):
            for chunks in counts:
                for parts in (size, 2 * size, 3 * size):
                    steps = [order(rank, size, chunks, parts) for rank in range(size)]
                    assert all(len(set(s)) == len(s) == 2 * chunks * parts for s in steps)
                    done, at, last = set(), [0] * size, chunks * size - 1
                    while True:
                        went = False
                        for rank in range(size):
                            while at[rank] < len(steps[rank]):
                                what, chunk, part = steps[rank][at[rank]]
                                stage = chunk * size + rank
                                if what == "F":
                                    need = {("F", stage - 1, part)} if stage else set()
                                else:
                                    need = {("B", stage + 1, part)} if stage < last else {("F", stage, part)}
                                if not need <= done:
                                    break
                                done.add((what, stage, part))
                                at[rank] += 1
                                went = True
                        if not went:
                            break
                    assert all(a == len(s) for a, s in zip(at, steps, strict=True)), (order, size, chunks, parts)
