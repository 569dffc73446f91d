"""tests/python/distributed/pipeline_test.py: stages on several processes train as the whole model does in one."""

import pytest

BODY = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (PipelineStage, Schedule1F1B, ScheduleDualPipeV, ScheduleGPipe, ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble, ScheduleLoopedBFS, ScheduleZBVZeroBubble)
from torch.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class
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
    count = n * chunks
    ends = [6 * s // count for s in range(count + 1)]
    stages = [PipelineStage(nn.Sequential(*layers()[ends[s] : ends[s + 1]]), s, count, "cpu")
              for s in range(count) if schedule_of.place(s, n) == rank]
    schedule = schedule_of(stages if chunks > 1 else stages[0], parts, loss_fn=loss_fn)
    ends_here = any(s.is_last for s in stages)
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
        result = schedule.step(*((x,) if rank == 0 else ()), target=y if ends_here else None, losses=losses)
        stages[0].forward_part = real
        assert not any(s.held or s.later for s in stages)
        optimizer.step()
        if ends_here:
            got.append(torch.stack(losses).mean().item())
            assert len(losses) == parts and result.shape == (12, 4)
        else:
            assert result is None and losses == []
    if ends_here:
        assert max(abs(a - b) for a, b in zip(got, want)) < 1e-12, (got, want)
        assert (result - out).abs().max() < 1e-12
    for s in stages:
        its = list(alone)[ends[s.stage_index] : ends[s.stage_index + 1]]
        for a, b in zip(s.submod.parameters(), nn.Sequential(*its).parameters()):
            assert (a - b).abs().max() < 1e-12
    shown = schedule.eval(*((x,) if rank == 0 else ()))
    if ends_here:
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
several = 2 if n == 3 else 3
run(ScheduleInterleaved1F1B, several, 6)
run(ScheduleLoopedBFS, several, 6)
run(ScheduleInterleavedZeroBubble, several, 6)
run(ScheduleZBVZeroBubble, 2, 6)
run(ScheduleDualPipeV, 2, 6)
assert get_schedule_class("zbvzerobubble") is ScheduleZBVZeroBubble and issubclass(ScheduleLoopedBFS, PipelineScheduleMulti)
for call, words in (
    (lambda: Schedule1F1B(PipelineStage(nn.Linear(1, 1), (rank + 1) % n, n), 1), "stages go round the processes"),
    (lambda: ScheduleZBVZeroBubble([PipelineStage(nn.Linear(1, 1), (rank + 1) % n + n * c, 2 * n) for c in (0, 1)], 1), "belongs on rank"),
    (lambda: run(ScheduleDualPipeV, 2, 2 * n - 1), "there must be"),
    (lambda: get_schedule_class("x"), "there is no schedule 'x'; there are"),
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
    """Every order runs to its end when a step waits for what it needs, whatever the numbers; with halves processes wait for less long."""
    from adjoin.distributed.pipelining import _orders as o

    def length(order, place, size, chunks, parts):
        """How many units the longest process takes; forward is one, as is each half of backward. None: it has no such order."""
        try:
            steps = [order(rank, size, chunks, parts) for rank in range(size)]
        except ValueError:
            return None
        stages = [[s for s in range(size * chunks) if place(s, size) == rank] for rank in range(size)]
        every = [(c, p) for c in range(chunks) for p in range(parts)]
        for s in steps:
            assert len(set(s)) == len(s) and sorted(x[1:] for x in s if x[0] == "F") == every
            assert sorted(x[1:] for x in s if x[0] in "BI") == every
            assert sorted(x[1:] for x in s if x[0] == "I") == sorted(x[1:] for x in s if x[0] == "W")
        ended, at, now, last = {}, [0] * size, [0] * size, chunks * size - 1
        while True:
            went = False
            for rank in range(size):
                while at[rank] < len(steps[rank]):
                    what, chunk, part = steps[rank][at[rank]]
                    stage = stages[rank][chunk]
                    if what == "F":
                        need = ("F", stage - 1, part) if stage else None
                    elif what == "W":
                        need = "B", stage, part
                    else:
                        need = ("B", stage + 1, part) if stage < last else ("F", stage, part)
                    if need is not None and need not in ended:
                        break
                    now[rank] = max(now[rank], ended.get(need, 0)) + (2 if what == "B" else 1)
                    ended["B" if what == "I" else what, stage, part] = now[rank]
                    at[rank] += 1
                    went = True
            if not went:
                break
        assert all(a == len(s) for a, s in zip(at, steps, strict=True)), (order, size, chunks, parts)
        return max(now) / chunks

    for size in (1, 2, 3, 4, 8):
        for parts in (size, 2 * size, 3 * size):
            found = {
                order.__name__: length(order, place, size, chunks, parts)
                for order, place, several in (
                    (o.gpipe, o.around, (1,)),
                    (o.breadth_first, o.around, (1, 3, 2)),
                    (o.interleaved, o.around, (1, 3, 2)),
                    (o.interleaved_halves, o.around, (1, 3, 2)),
                    (o.one_forward_one_backward, o.around, (1,)),
                    (o.v_halves, o.there_and_back, (2,)),
                    (o.dual_v, o.there_and_back, (2,)),
                )
                for chunks in several
            }
            ideal = 3 * parts
            assert found["interleaved"] <= found["one_forward_one_backward"]
            for name in ("interleaved_halves", "v_halves", "dual_v"):
                if found[name] is not None:
                    assert found[name] - ideal <= (found["interleaved"] - ideal) * 0.6, (name, size, parts, found)


def test_weights_may_wait():
    """A stage's two halves of backward give what one backward gives, whatever uses a parameter twice."""
    from adjoin.distributed import simulation

    simulation.run(halves_are_the_whole, 1)


def halves_are_the_whole(rank):
    import adjoin as torch
    from adjoin import nn
    from adjoin.distributed.pipelining import PipelineStage
    from adjoin.nn import functional as F

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.plain, self.twice, self.lent, self.one = (nn.Linear(4, 4) for _ in range(4))
            self.other = nn.Linear(4, 4)
            self.other.weight = self.one.weight  # one parameter of two modules
            self.norm, self.rnn = nn.LayerNorm(4), nn.LSTM(4, 4, batch_first=True)  # the last gives a tuple
            self.scale, self.unused = nn.Parameter(torch.full((4,), 1.5)), nn.Parameter(torch.ones(2))
            self.plain.bias.requires_grad_(False)

        def forward(self, x):
            x = F.relu(self.plain(x), inplace=True) + x
            x = self.twice(torch.tanh(self.twice(x)))
            x = self.lent(x) + F.linear(x, self.lent.weight)
            x = self.other(torch.tanh(self.one(x)))
            return self.rnn(self.norm(x) * self.scale)[0], x

    torch.manual_seed(0)
    net = Odd().double()
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    grads = [torch.randn(2, 3, 4, dtype=torch.float64) for _ in range(2)]
    whole = x.clone().requires_grad_()
    torch.autograd.backward(list(net(whole)), grads)
    want = {name: p.grad for name, p in net.named_parameters()}
    for index in (0, 1):  # without a gradient of its inputs, and with
        net.zero_grad()
        stage = PipelineStage(net, index, 3)
        stage.halves = True
        for part in range(2):
            stage.forward_part(part, (x,), {})
        for part in range(2):
            back = stage.backward_inputs(part, None, grads, part == 1)
            assert back is None if index == 0 else (back[0] - whole.grad).abs().max() < 1e-12
            assert all(p.grad is None for p in net.parameters())
        assert {id(p) for _, params in stage._used_once(*noted(stage, x))[0] for p in params} >= {
            id(p) for p in (net.plain.weight, net.norm.weight, net.norm.bias, net.lent.bias, net.one.bias)
        }
        stage.backward_weights(0), stage.backward_weights(1), stage.backward_weights(1)
        assert not stage.later
        for name, p in net.named_parameters():
            assert (p.grad is None) == (want[name] is None), name
            assert want[name] is None or (p.grad - 2 * want[name]).abs().max() < 1e-12, name


def noted(stage, x):
    with stage._noted() as layers:
        outputs = stage.submod(x)
    return list(outputs), layers
