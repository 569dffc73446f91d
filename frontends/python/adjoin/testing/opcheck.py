"""adjoin.testing.opcheck: does an op keep what its schema promises? ``python -m adjoin.testing.opcheck FILE|OP``, `adjoin opcheck`.

Every check runs in a process of its own, so one that crashes is a line of the table like any other.
"""

import ctypes
import faulthandler
import os
import pickle
import re
import signal
import sys
import traceback
from typing import NamedTuple

import adjoin

from .._op_overload import OpOverload
from ._checks import CHECKS, Fault, Skip, clones
from ._samples import NoSample, Op


class OpCheckError(AssertionError):
    """An op that does not keep its promises."""


class Verdict(NamedTuple):
    """What became of one check: ok is None where there was nothing to check."""

    op: str
    check: str
    ok: bool | None
    text: str


def _run(check, op, samples):
    try:
        return True, check(op, samples) or ""
    except Skip as e:
        return None, str(e)
    except Fault as e:
        return False, str(e)
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)[-1]
        return False, f"{type(e).__name__}: {e} ({os.path.basename(where.filename)}:{where.lineno})"


SECONDS = 120  # that a check may take, and a quarter of it a single call


def end_with(parent):
    """In a child: it ends when its parent does, however that ended."""
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def isolated(f, seconds=None):
    """f() in a child process; what it returns, or how the child ended."""
    seconds = seconds or SECONDS
    sys.stdout.flush()
    read, write = os.pipe()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        os.close(read)
        end_with(parent)
        faulthandler.disable()  # a crash is told by the parent
        signal.alarm(seconds)
        with os.fdopen(write, "wb") as out:
            pickle.dump(f(), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as incoming:
        data = incoming.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        late = number == signal.SIGALRM
        return False, f"does not end within {seconds} s" if late else f"crashes: {signal.strsignal(number)}"
    return pickle.loads(data) if data else (False, f"ends the process with exit code {os.WEXITSTATUS(status)}")


_AT_A_KEY = re.compile(r"no plugin has a kernel for .* and it has no body; .* has one at key ('[^']*')")


def _fitting(op, samples):
    """Those that the op takes; none if one call of it crashes or does not end."""

    def takes(sample):
        try:
            op.call(*clones(*sample)[0], **clones(*sample)[1])
            return True, ""
        except Exception as e:
            return None, f"{type(e).__name__}: {e}"

    fit, why = [], (None, "")
    for sample in samples:
        why = isolated(lambda s=sample: takes(s), max(1, SECONDS // 4))
        if why[0]:
            fit.append(sample)
        elif why[0] is False:
            return [], why
    return fit, why


def _unreadable():
    kind, error, _ = sys.exc_info()
    return str(error) if kind is ValueError else f"none can be made of its test: {kind.__name__}: {error}"


def check_op(name, samples=None, checks=None):
    """Verdicts on one op. samples: (args, kwargs) of calls; without them the row's or what the schema suggests."""
    guessed = samples is None
    try:
        op = Op(name)
        adjoin.manual_seed(0)
        samples = list(op.samples() if guessed else samples)
    except LookupError:
        if not adjoin._C.op_info(name):
            raise  # there is no such op
        return [Verdict(name, "samples", False, _unreadable())]
    except NoSample as e:
        return [Verdict(name, "samples", None, str(e))]
    except Exception:
        return [Verdict(name, "samples", False, _unreadable())]
    samples, why = _fitting(op, samples)
    if not samples and why[0] is False:
        return [Verdict(op.name, "samples", False, f"a call {why[1]}")]
    if not samples and (key := _AT_A_KEY.search(why[1])):
        return [
            Verdict(op.name, "samples", None, f"it has kernels at key {key[1]} alone, whose tensors are not made here")
        ]
    if not samples:
        told = "a call with what was given fails"
        if guessed:
            whose = (
                "no sample of its test is taken: correct it, or"
                if op.info["test"]
                else "no sample is taken of those guessed (float64);"
            )
            told = f"{whose} give some with --samples FILE. The last"
        return [Verdict(op.name, "samples", False, f"{told}: {why[1]}")]
    return [
        Verdict(op.name, check, *isolated(lambda c=check: _run(CHECKS[c], op, samples))) for check in checks or CHECKS
    ]


def main(words):
    """The command: a table, and 1 if a promise is broken."""
    from ._opcheck_command import run

    return run(words)


_TORCH_NAMES = {"test_schema": "schema", "test_autograd_registration": "gradient", "test_faketensor": "meta"}


def opcheck(op, args, kwargs=None, *, test_utils=None, raise_exception=True):
    """Checks an op on one call: a dictionary of each check's outcome, "SUCCESS" where it holds; raises OpCheckError otherwise.

    test_utils: names of CHECKS, or PyTorch's names for them.
    """
    name = op if isinstance(op, str) else getattr(op, "_qualname", None) or _name_of(op)
    wanted = [test_utils] if isinstance(test_utils, str) else list(test_utils or CHECKS)
    for w in wanted:
        if _TORCH_NAMES.get(w, w) not in CHECKS:
            raise ValueError(f"opcheck: there is no check {w!r}; {', '.join([*CHECKS, *_TORCH_NAMES])} are known")
    verdicts = check_op(name, [(list(args), dict(kwargs or {}))], [_TORCH_NAMES.get(w, w) for w in wanted])
    broken = [f"{v.op}: {v.check}: {v.text}" for v in verdicts if v.ok is False]
    if broken and raise_exception:
        raise OpCheckError("\n".join(broken))
    outcome = {True: "SUCCESS", None: "skipped", False: "FAILED"}
    named = zip(wanted, verdicts, strict=False) if len(verdicts) == len(wanted) else ((v.check, v) for v in verdicts)
    return {w: outcome[v.ok] if v.ok else f"{outcome[v.ok]}: {v.text}" for w, v in named}


def _name_of(op):
    if isinstance(op, OpOverload):
        return op._rows()[0]["name"]
    found = [n for n in adjoin._C.op_names() if adjoin._C.find_op(n) is op]
    if not found:
        raise TypeError(f"opcheck: {op!r} is no op of the registry; give an op, or its name")
    return found[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
