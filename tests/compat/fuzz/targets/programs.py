"""programs.py: short programs: one half mixes ops of all dtypes step by step, the other records, writes and takes gradients."""

from random_programs import Program

from ..draw import Draw
from ..live import Live
from . import views
from .pointwise import BINARY, UNARY


class Recorded:
    """A program of random_programs.py, which compares its values and gradients itself."""

    name = "recorded"

    def __init__(self, seed):
        self.seed, self.shown = seed, ""

    def differences(self):
        try:
            Program(self.seed).run()
        except AssertionError as error:
            self.shown = str(error)
            if "detach_: a view shares its history" in self.shown:  # of a reshape that copied, see differences.md
                return []
            return ["the program above differs"]
        return []

    def text(self):
        return f"Program({self.seed}):\n{self.shown}"


def step(d, live):
    kind, x = d.random(), live.small()
    v, rank = live.new(), live.names[x].dim()
    if kind < 0.25:
        return views.view(d, live, without=("bytes",))
    if kind < 0.4:
        return views.write(d, live)
    if kind < 0.55:
        return f"{v} = {x}.{d.pick(UNARY[:60])}()" if d.chance(0.5) else f"{v} = {x}.to(t.{d.dtype()})"
    if kind < 0.75:
        other = live.small() if d.chance(0.7) else d.scalar()
        return f"{v} = t.{d.pick(BINARY)}({x}, {other})"
    if kind < 0.9:
        return f"{v} = {x}.{d.pick(['sum', 'mean', 'amax', 'prod', 'cumsum', 'argmax', 'softmax', 'any', 'all', 'std'])}({d.dim(rank)})"
    return d.pick([f"{v} = t.cat([{x}, {live.pick()}])", f"{v} = t.where({x} > 0, {x}, {live.pick()})", f"{v} = {x} @ {live.pick()}",
                   f"{v} = {x}[{live.pick()} > 0]", f"{v} = {x}.sort()[0]", f"{v} = {x}.clone()", f"{v} = t.stack([{x}, {x}])"])  # fmt: skip


def make(seed, index):
    if index % 2:
        return Recorded(seed * 10_000_000 + index)
    d = Draw("programs", seed, index)
    for _ in range(d.int(1, 3)):
        d.tensor(shape=d.shape(0, 3), layout=0.15)
    live = Live(d)
    for _ in range(d.int(3, 8)):
        if not live.step(step(d, live)):
            break
    return live.case("program")
