"""tests/ops/samples.py: arguments of an op, from its row's `test` key and, where that is silent, from its kind."""

import itertools
import json
import pathlib
import random

import adjoin
import schema

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOATS = ("float64", "float32", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTS = ("int64", "int32", "int16", "int8", "uint8")
SHAPES = {
    "unary": [[[3, 4]], [[]], [[0, 3]], [[2, 3, 4]], [[1, 5, 1]]],
    "binary": [[[3, 4], [3, 4]], [[3, 4], [4]], [[2, 1, 3], [4, 1]], [[], [3]], [[0, 3], [3]], [[2, 3, 4], [1, 4]]],
    "reduce": [[[3, 4]], [[2, 3, 4]], [[]]],
}


class Row:
    """One op of the registry, with what its row says of testing it."""

    def __init__(self, info):
        self.info = info
        self.name = info["name"]
        self.ident = self.name.split("::")[-1].split(".")[0]
        self.space = self.name.split("::")[0] if "::" in self.name else ""
        self.params = schema.params(info["schema"])
        self.test = json.loads(info["test"]) if info["test"] else None
        self.elsewhere = (self.test or {}).get("elsewhere")  # the folder whose tests call it: no sample stands in a row
        if self.elsewhere:
            self.test = None
        self.other_name_of = (self.test or {}).get("same")
        if self.other_name_of:
            self.test = json.loads(adjoin._C.op_info(self.other_name_of)[0]["test"])
        self.kind = info["kind"]
        self.tensors = [p for p in self.params if p.tensor]

    def __repr__(self):
        return self.name

    @property
    def call(self):
        return adjoin._C.find_op(self.name)

    def dtypes(self):
        if self.test and "dtypes" in self.test:
            return self.test["dtypes"]
        return [*FLOATS, *COMPLEX, *INTS, "bool"]

    def shapes(self):
        """Lists of one shape for each tensor parameter; a list of tensors has a list of shapes."""
        if self.test and "shapes" in self.test:
            return self.test["shapes"]
        args = (self.test or {}).get("args", {})
        needed = [p for p in self.tensors if not p.optional and p.default is None and p.name not in args]
        if self.kind.startswith(("reduce", "scan")):
            return SHAPES["reduce"]
        if len(needed) == 1:
            return SHAPES["unary"]
        if len(needed) == 2:
            return SHAPES["binary"]
        return [[[3, 4]] * len(needed), [[2, 1, 4], [3, 1], *[[4]] * (len(needed) - 2)], [[]] * len(needed)]

    def arguments(self):
        """Every combination of the row's non-tensor arguments."""
        args = (self.test or {}).get("args", {})
        for values in itertools.product(*args.values()):
            yield {k: self.argument(k, v) for k, v in zip(args, values, strict=True)}

    def samples(self):
        """(shapes, other arguments), every combination, or the pairs that the row gives."""
        if "cases" in (self.test or {}):
            for case in self.test["cases"]:
                yield case["shapes"], {k: self.argument(k, v) for k, v in case["args"].items()}
            return
        for shapes in self.shapes():
            for other in self.arguments():
                yield shapes, other

    def argument(self, name, value):
        """A value of the row's `args`: what JSON cannot say stands there as text."""
        param = next(p for p in self.params if p.name == name)
        if value in ("none", "None") and param.base != "str":
            return None
        if param.tensor and isinstance(value, list):
            return adjoin.tensor(value)
        return getattr(adjoin, value) if param.base == "dtype" and value is not None else value

    @property
    def lacks_arguments(self):
        """Does a parameter without default have no sample?"""
        test = self.test or {}
        args = test["cases"][0]["args"] if "cases" in test else test.get("args", {})
        return [p.name for p in self.params
                if not p.tensor and not p.optional and p.default is None and p.name not in args]  # fmt: skip


def values(rng, count, low, high):
    """Numbers well apart from each other and from whole numbers, in random order: no ties, no kinks."""
    step = (high - low) / (count + 1)
    grid = [low + (i + 0.5 + 0.1 * rng.random()) * step for i in range(count)]
    grid = [x + 0.013 * step if abs(x - round(x)) < 1e-3 else x for x in grid]
    rng.shuffle(grid)
    return grid


def count_of(shape):
    n = 1
    for s in shape:
        n *= s
    return n


def indices(rng, shape, bound):
    """Whole numbers below bound; no two alike along a dimension where that is possible, for two writers of one place would
    have no one result."""
    order = list(range(bound))
    rng.shuffle(order)
    width = shape[-1] if len(shape) > 1 else 1
    return [order[(i // width + i % width) % bound] for i in range(count_of(shape))]


def make(rng, param, shape, dtype, test, device):
    """A tensor for one parameter."""
    n = count_of(shape)
    only = param.dtypes
    if param.name in test.get("signs", []) and dtype in FLOATS:
        data = [rng.choice([-1, 1]) for _ in range(n)]
    elif param.name in test.get("ints", {}) or only in ("int64", "integral", "int32"):
        bound = test.get("ints", {}).get(param.name, 2)
        data, dtype = indices(rng, shape, bound), "int64"
    elif only == "bool":
        data, dtype = [rng.random() < 0.5 for _ in range(n)], "bool"
    elif dtype == "bool":
        data = [rng.random() < 0.5 for _ in range(n)]
    elif dtype in INTS:
        low, high = int(test.get("low", -4)), int(test.get("high", 5))
        low = max(low, 0) if dtype == "uint8" else low
        data = [rng.randint(low, max(high, low + 1)) for _ in range(n)]
    elif dtype in COMPLEX:
        low, high = test.get("low", -2), test.get("high", 2)
        data = [complex(a, b) for a, b in zip(values(rng, n, low, high), values(rng, n, low, high), strict=True)]
    else:
        data = values(rng, n, test.get("low", -2), test.get("high", 2))
    flat = adjoin.tensor(data, dtype=getattr(adjoin, dtype))
    t = flat.reshape(shape) if n else adjoin.empty(shape, dtype=getattr(adjoin, dtype))
    return t.to(device) if device != "cpu" else t


def tensors(rng, row, shapes, dtype, device="cpu"):
    """Keyword arguments for the tensor parameters that `shapes` covers."""
    given = {}
    in_args = (row.test or {}).get("args", {})
    for param, shape in zip([p for p in row.tensors if p.name not in in_args], shapes, strict=False):
        if shape is None:
            continue
        if param.list:
            given[param.name] = [
                None if s == "none" else make(rng, param, s, dtype, row.test or {}, device) for s in shape
            ]
        else:
            given[param.name] = make(rng, param, shape, dtype, row.test or {}, device)
    return given


def batch_statistics(given, other):
    """What the forward row would have kept: mean and rstd of the input."""
    x = given["input"]._alias()
    dims = [d for d in range(x.ndim) if d != 1]
    return {"mean": x.mean(dims), "rstd": (x.var(dims, correction=0) + other["eps"]).rsqrt()}


def layer_statistics(given, other):
    x = given["input"]._alias()
    dims = list(range(-len(other["normalized_shape"]), 0))
    return {"mean": x.mean(dims, True), "rstd": (x.var(dims, correction=0, keepdim=True) + 1e-5).rsqrt()}


def group_statistics(given, other):
    x = given["input"]._alias()
    x = x.reshape(x.shape[0], other["num_groups"], -1)
    return {"mean": x.mean(2), "rstd": (x.var(2, correction=0) + 1e-5).rsqrt()}


def extremes(given, other):
    return {"out": given["input"]._alias().amax(other["dim"], other["keepdim"])}


def sums_of_exponentials(given, other):
    return {"logsumexp": given["input"]._alias().logsumexp(1)}


def recurrent_states(given, other):
    """What an LSTM over steps of one batch size keeps: its output, gates and cells."""
    x, h, c, w_ih, w_hh, b_ih, b_hh = (
        given[n]._alias() for n in ("input", "hx", "cx", "weight_ih", "weight_hh", "bias_ih", "bias_hh"))  # fmt: skip
    if x.shape[0] != sum(other["batch_sizes"]) or h.shape[0] != other["batch_sizes"][0]:
        return dict.fromkeys(("output", "gates", "cells"), x)  # the row will refuse the rest
    kept = ([], [], [])
    for rows in x.split(other["batch_sizes"][0]):
        parts = (rows @ w_ih.t() + b_ih + h @ w_hh.t() + b_hh).chunk(4, 1)
        i, f, g, o = (part.tanh() if k == 2 else part.sigmoid() for k, part in enumerate(parts))
        c = f * c + i * g
        h = o * c.tanh()
        for to, part in zip(kept, (h, adjoin.cat([i, f, g, o], 1), c), strict=True):
            to.append(part)
    output, gates, cells = map(adjoin.cat, kept)
    wide = adjoin.float32 if x.itemsize == 2 else x.dtype
    return {"output": output, "gates": gates.to(wide), "cells": cells.to(wide)}


def attended(given, other):
    """What attention returns for the same queries, keys and values."""
    q, k, v, mask = (given[n]._alias() for n in ("query", "key", "value", "mask"))
    scores = q @ k.transpose(-2, -1) * other["scale"] + mask
    if other["causal"]:
        scores = scores + (adjoin.ones(scores.shape[-2:]).triu(1) * -1e30).to(scores.dtype)
    weights = scores.softmax(-1)
    if other.get("p"):
        weights = adjoin._C.find_op("dropout_philox")(weights, *(other[n] for n in ("p", "seed", "offset")))
    return {"out": weights @ v, "logsumexp": scores.logsumexp(-1)}


def pivots_of(matrix, pivots):
    """The exchanges of rows that a factorisation of that argument makes."""
    return lambda given, other: {pivots: adjoin.linalg.lu_factor_ex(given[matrix]._alias()).pivots}


DEPENDENT = {
    "linalg::lu_solve": pivots_of("LU", "pivots"),
    "lu_solve": pivots_of("LU_data", "LU_pivots"),
    "lu_unpack": pivots_of("LU_data", "LU_pivots"),
    "_::attention_backward": attended,
    "_::softmax_nll_backward": sums_of_exponentials,
    "batch_norm_backward": batch_statistics,
    "layer_norm_backward": layer_statistics,
    "group_norm_backward": group_statistics,
    "_::share_ties": extremes,
    "rnn_layer_backward": recurrent_states,
}


def complete(row, given, other):
    """Arguments that must agree with others: a backward row is given what its forward row has made."""
    if row.name not in DEPENDENT:
        return given
    try:
        return {**given, **DEPENDENT[row.name](given, other)}
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        # They don't fit each other: the row has to say so.
        some = next(iter(given.values()))
        return {**{p.name: some for p in row.params if p.base == "Tensor" and not p.optional}, **given}


def all_samples(row, dtype, seed=0, device="cpu"):
    """(tensor keyword arguments, other keyword arguments), every combination."""
    for shapes, other in row.samples():
        rng = random.Random(f"{seed}{row.name}{shapes}{other}")
        yield complete(row, tensors(rng, row, shapes, dtype, device), other), other


def moved(given, change):
    """The arguments with every tensor changed."""
    return {
        k: [t if t is None else change(t) for t in v] if isinstance(v, list) else change(v) for k, v in given.items()
    }


def every_row(elsewhere=False):
    """Each row once; with those whose tests stand elsewhere only where asked for."""
    rows = []
    for name in adjoin._C.op_names():
        for info in adjoin._C.op_info(name) or []:
            if (info["provider"] == "" or info["provider"].startswith("ops_")) and info["name"] not in {
                r.name for r in rows
            }:
                rows.append(Row(info))
    for row in [row for row in rows if row.elsewhere]:
        texts = [file.read_text() for file in (ROOT / row.elsewhere).glob("*_test.py")]
        assert texts, f"{row.name}: there are no tests in {row.elsewhere}"
    return [row for row in rows if elsewhere or not row.elsewhere]
