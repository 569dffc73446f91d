"""adjoin.testing._samples: arguments to try an op with: from its row, from its schema, or from a file of the user's."""

import dataclasses
import itertools
import json
import re

import adjoin

from . import _form

_PARAMETER = re.compile(
    r"(?P<base>\w+)(?:<(?P<dtypes>[^>]*)>)?(?:\((?P<alias>\w+)(?P<write>!?)\))?(?P<one>\??)(?P<list>\[\d*\])?(?P<all>\??)"
    r"(?:\s+(?P<name>\w+))?(?:\s*=\s*(?P<default>.*))?$"
)
_OBJECTS = {"Object": "an object", "Function": "a function", "Stream": "a stream"}
_NUMBERS = {"int": 1, "dim": 0, "size": 2, "float": 0.5, "Scalar": 0.5, "bool": True, "str": "none"}
DTYPES = {
    name: getattr(adjoin, name)
    for name in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
}


@dataclasses.dataclass
class Parameter:
    """One parameter or result of a schema."""

    name: str
    base: str
    dtypes: str
    alias: str
    written: bool
    optional: bool
    list: str
    default: str | None

    @property
    def tensor(self):
        return self.base in ("Tensor", "Operand")


def _split(text):
    parts, depth, quote, now = [], 0, "", ""
    for c in text:
        if quote or c in "'\"":
            quote = "" if quote and c == quote else quote or c
        depth += (c in "([<" and not quote) - (c in ")]>" and not quote)
        if c == "," and depth == 0 and not quote:
            parts.append(now)
            now = ""
        else:
            now += c
    return [p.strip() for p in [*parts, now] if p.strip() and p.strip() != "*"]


def _parameter(text):
    found = _PARAMETER.match(text.removeprefix("aux ").strip())
    if not found:
        raise ValueError(f"opcheck: {text!r} cannot be read in a schema")
    f = found.groupdict()
    optional = bool(f["all"] or (f["one"] and not f["list"]))
    return Parameter(
        f["name"] or "",
        f["base"],
        f["dtypes"] or "",
        f["alias"] or "",
        bool(f["write"]),
        optional,
        f["list"] or "",
        f["default"],
    )


class NoSample(Exception):
    """There is nothing to try the op with, which is no fault of it."""


class Op:
    """An op of the registry with what its schema says."""

    def __init__(self, name):
        infos = adjoin._C.op_info(name)
        if not infos:
            raise LookupError(f"opcheck: no op named {name!r} in libadjoin or a loaded plugin")
        self.info = next((i for i in infos if i["name"] == name), infos[0])
        self.name, self.call = self.info["name"], adjoin._C.find_op(self.info["name"])
        before, _, after = self.info["schema"].partition("->")
        self.params = [_parameter(p) for p in _split(before[before.index("(") + 1 : before.rindex(")")])]
        after = after.strip()
        results = _split(after[1:-1]) if after.startswith("(") else [after]
        self.results = [_parameter(r) for r in results if not r.startswith("aux ")]
        self.test = _form.read(self._test_text(), [(p.name, p.tensor) for p in self.params], self.name)
        self.random = any(p.base == "Generator" for p in self.params) or "ordered" in self.info["tags"].split()

    def _test_text(self):
        text = self.info["test"]
        if text.startswith('{"same"'):
            other = adjoin._C.op_info(json.loads(text)["same"]) or [{"test": ""}]
            return other[0]["test"]
        return text

    def samples(self):
        """(args, kwargs): a few of what the row or the schema promises to take, float64 where the dtype is free."""
        made = self._made()
        given = self.test.get("cases") or [
            {"shapes": shapes, "args": dict(zip(self.test.get("args", {}), values, strict=True))}
            for shapes in self._shapes()
            for values in itertools.islice(itertools.product(*self.test.get("args", {}).values()), 3)
        ]
        for case in given[:6]:
            yield self._arguments(case.get("shapes", []), case.get("args", {}), made)

    def _made(self):
        """Objects for required parameters, by name: what the op that `after` names returns."""
        wanted = [p for p in self.params if p.base in _OBJECTS and not p.optional and p.default is None]
        after, made = self.test.get("after"), {}
        if wanted and after:
            maker = Op(after)
            args, kwargs = next(iter(maker.samples()))
            results = maker.call(*args, **kwargs)
            results = list(results) if isinstance(results, (tuple, list)) else [results]
            for p in wanted:
                for r, value in zip(maker.results, results, strict=False):
                    if r.base == p.base and (r.name == p.name or r.dtypes == p.dtypes):
                        made.setdefault(p.name, value)
        for p in wanted:
            if p.name not in made:
                what = _OBJECTS[p.base] + (f" of type {p.dtypes}" if p.dtypes else "")
                told = f"{after} returns none" if after else "`after` of its test names an op that returns one"
                raise NoSample(
                    f"its argument {p.name!r} is {what}, and {told if after else 'none can be made: ' + told}"
                )
        return made

    def _tensors(self):
        named = self.test.get("args", {})
        return [p for p in self.params if p.tensor and not p.optional and p.default is None and p.name not in named]

    def _shapes(self):
        if self.test.get("shapes"):
            return self.test["shapes"]
        n = len(self._tensors())
        return [[[3, 4]] * n, [[2, 3, 4]] * n, [[5]] * n]

    def _arguments(self, shapes, named, made):
        args, kwargs, shapes, keyword = [], {}, list(shapes), False
        for p in self.params:
            if p.name in made:
                value = made[p.name]
            elif p.name in named:
                value = self._other(p, named[p.name])
            elif p.tensor and shapes:
                shape = shapes.pop(0)
                if shape is None:
                    keyword = True
                    continue
                listed = p.list and shape and (shape[0] is None or isinstance(shape[0], list))
                value = (
                    [s if s is None else self._tensor(p, s) for s in (shape if listed else [shape] * 2)]
                    if p.list
                    else self._tensor(p, shape)
                )
            elif p.default is not None or p.optional:
                keyword = True  # what follows goes by name
                continue
            else:
                value = [_NUMBERS[p.base]] * 2 if p.list else _NUMBERS.get(p.base)
            if keyword or p.name in named:
                keyword = True
                kwargs[p.name] = value
            else:
                args.append(value)
        return args, kwargs

    def _other(self, p, value):
        """An argument as JSON has it."""
        if value in ("none", "None") and p.base != "str":
            return None
        if p.base == "dtype" and value is not None:
            return DTYPES[value]
        if p.tensor and isinstance(value, list) and not p.list:
            return adjoin.tensor(value)
        return value

    def _tensor(self, p, shape):
        ints, only = self.test.get("ints", ()), self.test.get("dtypes")
        if p.name in ints:
            return adjoin.testing.make_tensor(
                shape, dtype=adjoin.int64, device="cpu", low=0, high=ints[p.name] if isinstance(ints, dict) else 2
            )
        if only and not p.dtypes and "float64" not in only:
            return adjoin.testing.make_tensor(
                shape, dtype=DTYPES[only[0]], device="cpu", low=self.test.get("low", 0), high=self.test.get("high", 2)
            )
        if p.dtypes and p.dtypes not in ("floating", "real"):
            dtype = DTYPES.get(
                "int64" if p.dtypes == "integral" else "complex128" if p.dtypes == "complex" else p.dtypes,
                adjoin.float64,
            )
            return adjoin.testing.make_tensor(shape, dtype=dtype, device="cpu", low=0, high=2)
        low, high = self.test.get("low", -1.9), self.test.get("high", 1.9)
        x = adjoin.testing.make_tensor(shape, dtype=adjoin.float64, device="cpu", low=float(low), high=float(high))
        # Away from 0, where many functions have a corner.
        return adjoin.where(x.abs() < 0.05, x + 0.1, x) if low < 0 < high else x


def from_file(path):
    """Samples of a JSON file: a list of calls, each a list of arguments; {"shape": [3, 4], "dtype": "int64"} is a tensor."""
    with open(path) as file:
        try:
            calls = json.load(file)
        except ValueError as e:
            raise ValueError(f"opcheck: {path}: no JSON: {e}") from None
    if not isinstance(calls, list) or not all(isinstance(call, list) for call in calls):
        raise ValueError(
            f'opcheck: {path}: a list of calls is wanted, each a list of arguments: [[{{"shape": [3, 4], "dtype": "float64"}}, 2.0]]'
        )
    return [([_argument(a) for a in call], {}) for call in calls]


def _argument(value):
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        return [_argument(v) for v in value]
    if not isinstance(value, dict):
        return value
    shape, dtype = value.get("shape"), DTYPES.get(value.get("dtype", "float64"))
    if not isinstance(shape, list) or dtype is None or set(value) - {"shape", "dtype", "low", "high"}:
        raise ValueError(
            f'opcheck: a tensor is {{"shape": [3, 4], "dtype": "float64"}}, with "low" and "high" if wanted, found {json.dumps(value)}'
        )
    return adjoin.testing.make_tensor(
        shape, dtype=dtype, device="cpu", low=value.get("low", -1.9), high=value.get("high", 1.9)
    )


def tensors_in(args, kwargs=()):
    """Every tensor among arguments, in order."""
    found = []
    for a in (*args, *dict(kwargs).values()) if kwargs else args:
        if isinstance(a, adjoin.Tensor):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found += [t for t in a if isinstance(t, adjoin.Tensor)]
    return found


def mapped(f, args, kwargs):
    """The same arguments with f of every tensor."""

    def one(a):
        if isinstance(a, (list, tuple)):
            return [one(x) for x in a]
        return f(a) if isinstance(a, adjoin.Tensor) else a

    return [one(a) for a in args], {k: one(v) for k, v in kwargs.items()}
