"""tests/packages/grammar_test.py: frontends/docs/grammar.md has every kind, tag, flag and code that the sources know and no other;
its schemas go through the parser."""

import pathlib
import re

import adjoin as T
import pytest
from adjoin.testing import _form

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "frontends/docs/grammar.md").read_text()
SCHEMA = re.compile(r"`(docs::[^`]*\)[^`]*Tensor[^`]*|docs::[^`]* -> [^`]*)`")


def part(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)[1]


def first_words(text):
    """What stands in the first column of tables."""
    return re.findall(r"^\| `([^`]+)`[^|]*\|", text, re.M)


def source(pattern):
    return "\n".join(p.read_text() for p in sorted(ROOT.glob(pattern)))


def enums(text, prefix):
    return re.findall(rf"\b({prefix}[A-Z_0-9]+) = ", text)


GRAMMAR = part("The grammar")
REFUSED = GRAMMAR[GRAMMAR.index("Refused") :]
TAKEN = SCHEMA.findall(GRAMMAR[: GRAMMAR.index("Refused")])


@pytest.mark.parametrize("schema", TAKEN)
def test_an_example_is_read(schema):
    if "Object<" in schema:  # read, and then its type is looked for; tests/abi/objects_test.py has one that is there
        with pytest.raises(RuntimeError, match="nobody has registered the type of Object<docs::plan>"):
            T._C.define_op("docs", schema, "an example", "function-only", lambda *args: args[0])
        return
    T._C.define_op("docs", schema, "an example", "function-only", lambda *args: args[0])
    name = schema[: schema.index("(")]
    (info,) = [i for i in T._C.op_info(name) if i["name"] == name]
    assert info["schema"] == schema


def test_there_is_an_example_of_each_production():
    assert len(TAKEN) > 30 and all(
        f"| `{base}` |" in GRAMMAR for base in re.findall(r'\{"(\w+)", AJ_PARAM_', source("core/op/schema.cpp"))
    )
    assert set(first_words(GRAMMAR)) - set(SCHEMA.findall(REFUSED)) == set(
        re.findall(r'\{"(\w+)", AJ_PARAM_', source("core/op/schema.cpp"))
    )


@pytest.mark.parametrize("schema, told", re.findall(r"^\| `(docs::[^`]+)` \| (.+?) \|$", REFUSED, re.M))
def test_a_wrong_one_is_refused(schema, told):
    with pytest.raises(RuntimeError, match=re.escape(told)):
        T._C.define_op("docs", schema, "", "", lambda *args: args[0])


def test_kinds():
    known = re.findall(r'\{"(\w+)", Kind::', source("core/op/kinds.cpp"))
    assert first_words(part("Kinds")) == known


def test_tags():
    core = source("core/**/*.[ch]pp")
    known = set(
        re.findall(r'(?:has_word|number_after)\(op->tags, "([^"]+)"|tags\.find\("([^"]+)"\)|kTag = "([^"]+)"', core)
    )
    known = {next(filter(None, words)) for words in known}
    python = source("frontends/python/src/registry.cpp")
    known |= set(re.findall(r'has_tag\(tags, "([^"]+)"\)', python)) | {"varargs:"} & set(
        re.findall(r'"(varargs:)', python)
    )
    rows = source("core/ops/**/*.toml") + source("plugins/ops_*/*.toml")
    for listed in re.findall(r"^tags = \[(.*?)\]", rows, re.M):
        for word in re.findall(r'"([^"]+)"', listed):
            prefix = word[: word.find(":") + 1]
            known.add(word if word in known or not prefix else prefix)
    known -= {"bool:", "numbers:", "layout:", "fallback:"}
    assert set(first_words(part("Tags"))) == known


@pytest.mark.parametrize("prefix", ["AJ_CALL_", "AJ_OPERAND_", "AJ_KERNEL_", "AJ_OP_", "AJ_PLAN_", "AJ_INFO_"])
def test_flags(prefix):
    known = enums(source("abi/op.h"), prefix)
    assert [w for w in first_words(part("Flags")) if w.startswith(prefix)] == known and known


def test_flags_of_parameters():
    text = source("abi/op.h")
    known = [w for w in enums(text, "AJ_PARAM_") if re.search(rf"\b{w} = 1u << ", text)]
    assert [w for w in first_words(part("Flags")) if w.startswith("AJ_PARAM_")] == known


def test_no_other_name_of_the_contract_stands_there():
    known = set(re.findall(r"\bAJ_[A-Z_0-9]+\b", source("abi/*.h")))
    assert set(re.findall(r"\bAJ_[A-Z_0-9]+\b", PAGE)) <= known


def test_keys_of_samples():
    assert first_words(part("Samples")) == list(_form.KEYS)


def test_codes(tmp_path):
    from adjoin.utils.cpp_extension import load_inline

    text = re.search(r"enum \{ /\* status codes[^*]*\*/(.*?)\};", source("abi/base.h"), re.S)[1]
    known = re.findall(r"(AJ_[A-Z_]+) = (\d+)", text)
    told = dict(re.findall(r"^\| `(AJ_\w+)` \| `?(\w+)", part("Status codes"), re.M))
    assert list(told) == [name for name, _ in known]
    load_inline(
        "codes",
        'Tensor raises(Tensor x, int64_t code) { adjoin::kit::raise(int32_t(code), "x"); return x; }',
        functions="raises",
    )
    for name, number in known[1:]:
        wanted = T.OutOfMemoryError if name == "AJ_OUT_OF_MEMORY" else __builtins__[told[name]]
        with pytest.raises(wanted) as caught:
            T.ops.codes.raises(T.ones(1), int(number))
        assert type(caught.value) is wanted or type(caught.value).__base__ is wanted, name
