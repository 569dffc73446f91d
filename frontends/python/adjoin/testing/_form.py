"""adjoin.testing._form: the form of an op's `test`, the JSON with samples to try it with, and what is wrong with one."""

import difflib
import json

# What each key says. docs/grammar.md has the same keys, a test compares them.
KEYS = {
    "shapes": "samples: each a list of shapes, one for each tensor parameter in order; null: not given; a list of shapes for a Tensor[]",
    "args": "other arguments by name, each a list of values; every combination is tried with every sample",
    "cases": 'samples with their own arguments: [{"shapes": [[3, 4]], "args": {"dim": 0}}]; then shapes and args are not read',
    "low": "the least number that floating arguments take (-2)",
    "high": "the largest (2)",
    "ints": 'parameters that are indices: {"index": 3} makes them int64 below 3, ["index"] below 2',
    "signs": "a list of parameters that are +1 or -1",
    "dtypes": "a list of the dtypes to try, without it all",
    "also": "special values to try one at a time: numbers, or lists with one for each tensor parameter",
    "size": "the size in shapes that is made 0, and large",
    "fixed": "a list of parameters that no derivative is asked for",
    "values": "false: the result's contents are arbitrary",
    "repeats": "false: no samples whose elements are all alike",
    "same": "the name of an op whose test this is, too",
    "after": "the op whose results are given to parameters of the same name",
    "ref": "what computes the same: a name in NumPy or SciPy; for libadjoin's own rows",
    "ulp": "how far results of a pointwise op may be off, in units of the last place (4 in float32, 8 in float64 and complex dtypes)",
    "ulp_floor": "the size at least whose last place counts: for what cancels (0)",
    "elsewhere": "the folder of the tests that try it, where no sample can say what it takes",
}


def read(text, params, name):
    """The test as a dictionary; a ValueError says what is wrong with it. params: pairs of a name and whether it is a tensor."""
    try:
        test = json.loads(text) if text else {}
    except ValueError as e:
        raise ValueError(f"its test is no JSON: {e}") from None
    if not isinstance(test, dict):
        raise ValueError(f"its test is {_kind(test)}, a JSON object is wanted, e.g. {EXAMPLE}")
    for key in test:
        if key not in KEYS:
            raise ValueError(
                f"its test has a key {key!r}, which nothing reads{_near(key, KEYS)}; known are {', '.join(KEYS)}"
            )
    names = [n for n, _ in params]
    for key in {"shapes", "cases"} & test.keys():
        test[key] = _nulls(test[key])
    for case in _list(test, "cases"):
        if not isinstance(case, dict) or set(case) - {"shapes", "args"} or not isinstance(case.get("args", {}), dict):
            raise ValueError('its test: cases: {"shapes": [...], "args": {...}} is wanted, found ' + json.dumps(case))
        _shapes(case.get("shapes", []), params, name)
        _named(case.get("args", {}), names, name)
    for sample in _list(test, "shapes"):
        _shapes(sample, params, name)
    args = test.get("args", {})
    if not isinstance(args, dict) or any(not isinstance(v, list) for v in args.values()):
        raise ValueError(f'its test: args: an object of lists is wanted, {{"dim": [0, 1]}}, found {json.dumps(args)}')
    _named(args, names, name)
    for key in ("low", "high", "ulp", "ulp_floor"):
        if key in test and (isinstance(test[key], bool) or not isinstance(test[key], (int, float))):
            raise ValueError(f"its test: {key}: a number is wanted, found {json.dumps(test[key])}")
    for key in ("ints", "signs", "fixed"):
        value = test.get(key, [])
        if not isinstance(value, (list, dict) if key == "ints" else list):
            raise ValueError(f"its test: {key}: a list of parameters is wanted, found {json.dumps(value)}")
        _named(value, names, name)
    return test


EXAMPLE = '{"shapes": [[[3, 4]], [[5]]], "args": {"by": [1.0, -2.5]}, "low": 0.1}'


def _nulls(value):
    """A row's TOML has no null: it writes none."""
    return [None if v == "none" else _nulls(v) for v in value] if isinstance(value, list) else value


def _kind(value):
    return {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(type(value), "a number")


def _near(word, known):
    close = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _list(test, key):
    value = test.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"its test: {key}: a list is wanted, found {json.dumps(value)}")
    return value


def _named(given, names, op):
    for n in given:
        if n not in names:
            raise ValueError(f"its test: {op} has no parameter {n!r}{_near(str(n), names)}; it has {', '.join(names)}")


def _shape(value):
    return isinstance(value, list) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in value)


def _shapes(sample, params, op):
    tensors = [n for n, tensor in params if tensor]
    one = isinstance(sample, list) and all(
        s is None or _shape(s) or (isinstance(s, list) and all(i is None or _shape(i) for i in s)) for s in sample
    )
    if not one:
        wanted = json.dumps([[3, 4]] * max(1, len(tensors)))
        raise ValueError(
            f"its test: shapes: a sample is a list of shapes, one for each tensor, {wanted}, found {json.dumps(sample)}"
        )
    if len(sample) > len(tensors):
        raise ValueError(
            f"its test: shapes: {json.dumps(sample)} has {len(sample)} shapes, {op} takes {len(tensors)} tensors"
        )


def explained():
    """The form, as text for people."""
    lines = [f"  {key:9}  {what}" for key, what in KEYS.items()]
    return "\n".join(
        [
            "The form of an op's `test` (aj_op_def.test), a JSON object of any of these keys, e.g.",
            f"  {EXAMPLE}",
            *lines,
        ]
    )
