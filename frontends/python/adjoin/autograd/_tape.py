"""adjoin.autograd's tape as a value: printed with its lines, replayed on other leaves, compared with another run's."""

from .._C import Tensor


def _short(v):
    """A saved value in a few words."""
    if isinstance(v, Tensor):
        return f"{str(v.dtype).removeprefix('adjoin.')}{list(v.shape)}"
    if isinstance(v, (tuple, list)):
        return "[" + ", ".join(map(_short, v)) + "]"
    return repr(v)


def _bits(v):
    if isinstance(v, Tensor):
        t = v.detach()
        return v.dtype, tuple(v.shape), repr(t.reshape(-1).tolist())
    if isinstance(v, (tuple, list)):
        return [_bits(x) for x in v]
    return repr(v)


def _variable(node):
    return getattr(node, "variable", None)


def _key(node):
    """A leaf has a new node each time that one looks."""
    leaf = _variable(node)
    return node if leaf is None else ("leaf", id(leaf))


class Entry:
    """A step of a tape: its name, the line that recorded it, the entries it was made of, and what it keeps."""

    def __init__(self, node, inputs):
        self.node, self.inputs = node, inputs
        self.variable = _variable(node)
        self.name, self.line = type(node).__name__, node.line if self.variable is None else ""

    @property
    def saved(self):
        """What is kept for the derivative; a tensor that was written since, or was freed by backward, raises."""
        return self.node.saved

    def __str__(self):
        made = ", ".join("-" if i is None else f"%{i}" for i in self.inputs)
        if self.variable is not None:
            return f"leaf {_short(self.variable)}"
        try:
            kept = ", ".join(map(_short, self.saved))
        except RuntimeError:
            kept = "freed, or written since"
        return f"{self.name}({made})" + (f" keeps {kept}" if kept else "") + (f"  @ {self.line}" if self.line else "")


class Difference:
    """Where two tapes differ first."""

    def __init__(self, at, what, mine, other):
        self.at, self.what, self.mine, self.other = at, what, mine, other

    def __str__(self):
        return f"entry {self.at}: {self.what}\n  this:  {self.mine}\n  other: {self.other}"

    __repr__ = __str__


class Tape:
    """What leads to a result: entries in the order of recording. It prints."""

    def __init__(self, result, program=None, form=None):
        self.result, self._program, self._form = result, program, form
        if result.grad_fn is None:
            raise RuntimeError(
                "tape: the tensor has no history; it was made of tensors that do not require grad, inside no_grad, or detached"
            )
        found, todo = {}, [result.grad_fn]
        while todo:
            node = todo.pop()
            if _key(node) in found:
                continue
            found[_key(node)] = node
            todo.extend(n for n, _ in node.next_functions if n is not None)
        nodes = list(found.values())
        leaves = [n for n in reversed(nodes) if _variable(n) is not None]
        steps = sorted((n for n in nodes if _variable(n) is None), key=lambda n: n._sequence_nr())
        place = {_key(n): i for i, n in enumerate(leaves + steps)}
        self.entries = [
            Entry(n, [None if f is None else place[_key(f)] for f, _ in n.next_functions]) for n in leaves + steps
        ]

    def __len__(self):
        return len(self.entries)

    def __iter__(self):
        return iter(self.entries)

    def __getitem__(self, at):
        return self.entries[at]

    def __str__(self):
        return "\n".join(f"%{i} = {e}" for i, e in enumerate(self.entries))

    __repr__ = __str__

    @property
    def leaves(self):
        """The tensors that gradients go to."""
        return [e.variable for e in self.entries if e.variable is not None]

    def replay(self, *leaves):
        """The tape of the same calls on other leaves; the function that made them does not run."""
        if self._program is None:
            raise RuntimeError(
                "replay: a tape alone keeps what derivatives need, not each argument; make it by tape(function, *leaves), "
                "which keeps the calls"
            )
        return Tape(self._form(self._program(*leaves)), self._program, self._form)

    def difference(self, other):
        """Where another tape differs first, in its calls, lines or kept values; None: nowhere."""
        for i, (a, b) in enumerate(zip(self.entries, other.entries, strict=False)):
            if (a.variable is None) != (b.variable is None) or a.name != b.name:
                return Difference(i, "another call", a, b)
            if a.inputs != b.inputs:
                return Difference(i, "it is made of other entries", a, b)
            if a.line and b.line and a.line != b.line:
                return Difference(i, "another line", a, b)
            mine, its = ([e.variable] if e.variable is not None else e.saved for e in (a, b))
            if _bits(mine) != _bits(its):
                return Difference(i, "other values are kept", a, b)
        if len(self) != len(other):
            longer = self if len(self) > len(other) else other
            at = min(len(self), len(other))
            ends = ("the tape ends", longer[at]) if longer is other else (longer[at], "the tape ends")
            return Difference(at, "one is longer", *ends)
        return None


def tape(result, *leaves):
    """The tape that leads to a tensor; or, of a function and its leaves, what the call records, which can be replayed.

    ``print(tape(loss))`` shows each step with the line that recorded it; ``a.difference(b)`` compares two runs.
    """
    if isinstance(result, Tensor):
        if leaves:
            raise TypeError(
                "tape: leaves are given beside a tensor; they are those of a function: tape(function, *leaves)"
            )
        return Tape(result)
    if not callable(result):
        raise TypeError(f"tape: a tensor or a function is wanted, not {type(result).__name__}")
    from ..jit import trace

    program = trace(result, leaves)

    def one(made):
        if not isinstance(made, Tensor):
            raise TypeError(f"tape: the function gives a {type(made).__name__}; one tensor is wanted")
        return made

    return Tape(one(program(*leaves)), program, one)
