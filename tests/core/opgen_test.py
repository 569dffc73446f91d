"""tests/core/opgen_test.py: what opgen makes of a row, and where it says that a row is wrong."""

import json
import pathlib
import subprocess
import sys

import pytest

OPS = pathlib.Path(__file__).resolve().parents[2] / "core" / "ops"


def opgen(*args):
    command = [sys.executable, str(OPS / "opgen.py"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def generate(tmp_path, text):
    """Writes one family beside the real ones; returns the run and the folder of what it made."""
    family = tmp_path / "mine.toml"
    family.write_text(text)
    out = tmp_path / "out"
    return opgen("--out", out, "--only", "mine", family, *sorted(OPS.rglob("*.toml"))), out


def row(grad=None, definition="mine(Tensor input, Tensor other) -> Tensor", **more):
    lines = ["[[op]]", f"def = {json.dumps(definition)}", 'doc = "Mine."', 'kind = "binary_float"']
    lines += [f"{k} = {json.dumps(v)}" for k, v in more.items()]
    lines += [f"grad = {grad}"] * (grad is not None)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "grad, message",
    [
        (
            '{ input = "g * sigmiod(input)", other = "g" }',
            "the formula calls 'sigmiod', which is not an op; did you mean 'sigmoid'?",
        ),
        (
            '{ input = "g * inptu", other = "g" }',
            "names 'inptu', which is neither an argument nor a result; did you mean 'input'?",
        ),
        ('{ input = "g * input.size", other = "g" }', "no property 'size'"),
        ('{ input = "g if input else other", other = "g" }', "may look only at arguments that are no tensors"),
        ('{ input = "sigmoid(g, 3)", other = "g" }', "2 arguments are given, it takes 1"),
        ('{ input = "add(g, input, beta=3)", other = "g" }', "'beta' is given twice or is no parameter of it"),
        ('{ input = "input.shape", other = "g" }', "the gradient of 'input' must be a tensor, not ints"),
        ('{ inputs = "g", other = "g" }', "'inputs' is no tensor argument that can have a gradient"),
        ('{ input = "g *", other = "g" }', "cannot read the formula"),
        ('{ "input, other" = "g" }', "no tuple of 2"),
    ],
)
def test_a_wrong_formula_is_an_error_at_its_line(tmp_path, grad, message):
    run, _ = generate(tmp_path, row(grad))
    assert run.returncode != 0
    assert "mine.toml:5: mine: " in run.stderr and message in run.stderr


@pytest.mark.parametrize(
    "text, message",
    [
        (row(definition="mine(Tensr input) -> Tensor"), "cannot read 'Tensr input'"),
        (row(definition="mine(Tensor) -> Tensor"), "has no name"),
        (row().replace("binary_float", "binry"), "no kind 'binry'"),
        (row(gard="g"), "'gard' is not a key of a row"),
        (row().replace('kind = "binary_float"', 'kind = "custom"'), "needs 'infer' or 'body'"),
        (row() + row(), "is defined at"),
        (row(aliases=["exp"]), "is defined at"),
        (row(aliases=["ours", "ours"]), "is defined at"),
        (row(aliases=["mine"]), "is defined at"),
        (row(aliases=["not a name"]), "the alias 'not a name' is not a name"),
        (row(aliases=["ours"], definition="mine(Tensor input, Tensor other) -> (Tensor, Tensor)"), "has no aliases"),
        (row().replace("Mine.", "Another name for add."), "stands in that op's 'aliases'"),
        (row(body="input + othr"), "names 'othr'"),
        (row(body="input.shape"), "result 0 is ints, the schema says Tensor"),
    ],
)
def test_a_wrong_row_is_an_error(tmp_path, text, message):
    run, _ = generate(tmp_path, text)
    assert run.returncode != 0 and "mine.toml:" in run.stderr and message in run.stderr


@pytest.mark.parametrize(
    "grad, saved",
    [
        ('{ input = "g", other = "-g" }', "nothing"),
        ('{ input = "g * other", other = "g * input" }', "input, other"),
        ('{ input = "g * out", other = "g * out" }', "out"),
        ('{ input = "reshape(g, input.shape)", other = "g * other.numel" }', "input.shape, other.shape"),
        ('{ input = "g * input * input.ndim", other = "g" }', "input"),
    ],
)
def test_what_a_formula_saves(tmp_path, grad, saved):
    run, out = generate(tmp_path, row(grad))
    assert run.returncode == 0, run.stderr
    assert f"// mine saves: {saved}\n" in (out / "mine.gen.cpp").read_text()


def test_an_alias_is_an_op_that_calls_the_one_it_names(tmp_path):
    definition = "mine(Tensor input, *, Scalar alpha=1) -> Tensor"
    text = row(definition=definition, aliases=["ours", "special::mine"], tags=["autocast:low", "slot:nb_add"])
    run, out = generate(tmp_path, text)
    assert run.returncode == 0, run.stderr
    made = (out / "mine.gen.cpp").read_text()
    for name, tags in (("ours", "in-place"), ("special::mine", "")):
        variable = name.replace("::", "_") + "_named"
        assert f'kit::Op {variable}("mine");' in made and f"kit::call_named, &{variable}}}" in made
        entry = made[made.index(f'AJ_STR_LIT("{name}(Tensor input, *, Scalar alpha=1) -> Tensor")') :]
        strings = [s.split('")')[0] for s in entry.split('AJ_STR_LIT("')[2:6]]
        assert strings == ["Another name for mine.", "", tags, '{\\"same\\": \\"mine\\"}']


def test_an_alias_has_the_stubs_and_the_functions_of_a_row(tmp_path):
    rows = sorted(OPS.rglob("*.toml"))
    assert opgen("--out", tmp_path, "--only", "all", *rows).returncode == 0
    listed = {r["name"]: r for r in json.loads((tmp_path / "ops.json").read_text())}
    assert listed["divide"]["schema"] == listed["div"]["schema"].replace("div", "divide", 1)
    assert listed["divide"]["body"] == "div(input, other, rounding_mode=rounding_mode)"
    assert "core/ops/pointwise.toml:" in listed["divide"]["file"]
    assert "def arccos(input: Tensor) -> Tensor:" in (tmp_path / "ops.pyi").read_text()
    assert "inline Tensor arccos(const Tensor& input" in (tmp_path / "ops.hpp").read_text()
    assert (
        "acos(input)" not in opgen("--show", "arccos").stdout and 'Op op("arccos")' in opgen("--show", "arccos").stdout
    )


def test_what_occurs_twice_is_computed_once(tmp_path):
    _, out = generate(tmp_path, row('{ input = "g * exp(input - other)", other = "-(g * exp(input - other))" }'))
    assert (out / "mine.gen.cpp").read_text().count("adjoin::exp(") == 1


def test_an_unchanged_file_is_not_written_again(tmp_path):
    generate(tmp_path, row('{ input = "g", other = "g" }'))
    made = tmp_path / "out" / "mine.gen.cpp"
    before = made.stat().st_mtime_ns
    generate(tmp_path, row('{ input = "g", other = "g" }'))
    assert made.stat().st_mtime_ns == before


def test_show_prints_the_whole_of_a_row():
    run = opgen("--show", "atan2")
    assert run.returncode == 0, run.stderr
    assert "// saves: input, other" in run.stdout
    assert "inline Tensor atan2(" in run.stdout and "atan2_vjp" in run.stdout
    assert "#line" in run.stdout and "core/ops/pointwise.toml" in run.stdout


def test_show_warns_of_a_copy():
    assert "mul_: saves a copy of input when recording" in opgen("--show", "mul").stdout
    assert "saves a copy" not in opgen("--show", "exp").stdout


def test_show_of_an_unknown_row():
    run = opgen("--show", "no_such_op")
    assert run.returncode != 0 and "no row is named 'no_such_op'" in run.stderr
