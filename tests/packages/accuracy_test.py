"""tests/packages/accuracy_test.py: the page on accuracy has every pointwise function, and its numbers are within what is promised."""

import pathlib
import re

import adjoin as T

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "frontends/docs/accuracy.md").read_text()


def test_every_pointwise_function_is_there():
    rows = {
        name.replace("nn.functional.", "nn::").replace("special.", "special::")
        for name in re.findall(r"^\| `([\w.]+)`", PAGE, re.M)
    }
    exact = re.search(r"^Exact, .*: (.*)\.$", PAGE, re.M)[1]
    rows |= set(re.findall(r"`([\w:]+)`", exact))
    made = {"copy_", "fill_", "dropout_philox", "relu_backward"}  # no functions of numbers
    public = set()
    for name in T._C.op_names():
        for info in T._C.op_info(name) or ():
            if (
                info["kind"].startswith(("unary", "binary", "compare", "pointwise"))
                and not info["name"].startswith("_")
                and not info["provider"]
            ):
                public.add(info["name"])
    assert {n for n in public if not n.endswith("philox_") and n != "arange_fill_"} - made <= rows


def test_the_numbers_are_within_the_promise():
    for part, most, wide in (("Elementary", 3, 3), ("Special", 8, None)):
        text = PAGE[PAGE.index(part) :]
        for name, narrow, double in re.findall(
            r"^\| `([\w.]+)`[^|]*\| ([\d.e+]+) \| ([\d.e+]+) \|", text[: text.index("\n\n", text.index("| ---"))], re.M
        ):
            assert float(narrow) <= most and (wide is None or float(double) <= wide), name
