"""adjoin.jit._graph: what `.graph` is: the text of a program, which also lists its inputs, results and calls, as PyTorch's graphs do."""

import re

_HEAD = re.compile(r'^fn (\S+?)\((.*)\)(?: -> "(.*)")? \{$', re.M)
_PARAM = re.compile(r'%([\w.]+)(?:: ("[^"]*"|\w+(?:\[[^\]]*\])?))?')
_CALL = re.compile(r"^(?:(.*?) = )?((?:fn:)?[$.]?[A-Za-z_][\w.:]*)\((.*)$")
_KINDS = {
    "$list": "prim::ListConstruct", "$tuple": "prim::TupleConstruct", "$dict": "prim::DictConstruct", "$getattr": "prim::GetAttr",
    "$setattr": "prim::SetAttr", "$raise": "prim::RaiseException", "$isinstance": "prim::isinstance", "$named": "prim::TupleConstruct",
    "$not": "aten::__not__", "$is": "aten::__is__", "$isnot": "aten::__isnot__", "$getitem": "aten::__getitem__",
    "param": "prim::Param", "const": "prim::Constant", "if": "prim::If", "while": "prim::Loop", "for": "prim::Loop",
}  # fmt: skip


class Value:
    """A value of a program: its name and what is known of its type."""

    def __init__(self, name, kind):
        self._name, self._kind = name, kind

    def debugName(self):
        return self._name

    def type(self):
        """The type as an object; AnyType where nothing is said."""
        import typing

        from .. import _C
        from ._type_names import AnyType, TensorType, ann_to_type

        if not self._kind.startswith('"'):
            return TensorType.get() if self._kind else AnyType.get()
        try:
            return ann_to_type(eval(self._kind[1:-1], {**vars(typing), "Tensor": _C.Tensor}))
        except Exception:  # a class of the program
            return AnyType.get()

    def __repr__(self):
        return f"{self._name} : {self._kind.strip(chr(34))}"


class Node:
    """A call of a program, or an if or a loop."""

    def __init__(self, kind, given, made, text):
        self._kind, self._given, self._made, self._text = kind, given, made, text

    def kind(self):
        """Its name as PyTorch's graphs have it: aten::linear, prim::If."""
        return self._kind

    def inputs(self):
        return iter([Value(n, "") for n in self._given])

    def outputs(self):
        return iter([Value(n, "") for n in self._made])

    def output(self):
        (only,) = self.outputs()
        return only

    def inputsSize(self):
        return len(self._given)

    def outputsSize(self):
        return len(self._made)

    def __repr__(self):
        return self._text


def _kind(name):
    if name in _KINDS:
        return _KINDS[name]
    if name.startswith("fn:"):
        return "prim::CallFunction"
    return "aten::" + name.lstrip("$.").rpartition("::")[2].partition(".")[0]


def _node(line):
    text = re.sub(r" @\d+$", "", line)
    if text.endswith("{"):
        names, _, rest = (
            text.rpartition(" = ") if re.match(r"(?:%[\w.]+(?:, )?)+ = (?:if|while)", text) else ("", "", text)
        )
        word = rest.split()[0]
        return Node(_kind(word), _names(rest), _names(names), text) if word in ("if", "while", "for") else None
    if found := re.match(r"(%[\w.]+) = (param|const) ", text):
        return Node(_kind(found[2]), [], _names(found[1]), text)
    found = _CALL.match(text)
    return (
        None
        if found is None
        else Node(_kind(found[2]), _names(found[3].partition(" : ")[0]), _names(found[1] or ""), text)
    )


def _names(text):
    return re.findall(r"%([\w.]+)", text)


class Graph(str):
    """The text of a program, which files hold too. result says the type of what it gives, where that is known."""

    def __new__(cls, text, name=None, result=None):
        made = super().__new__(cls, text)
        made._name, made._result = name, result
        return made

    def _body(self):
        """(parameters, annotation of the result, lines) of the function that is called from outside."""
        heads = list(_HEAD.finditer(self))
        head = next((h for h in heads if h[1] == self._name), None) or next(
            (h for h in heads if h[1] == "forward"), heads[-1]
        )
        lines = self[head.end() :].partition("\n}")[0].split("\n")[1:]
        return head[2], head[3], lines

    def inputs(self):
        params, _, _ = self._body()
        return iter([Value(name, kind) for name, kind in _PARAM.findall(params)])

    def outputs(self):
        _, said, lines = self._body()
        kind = f'"{said or self._result}"' if said or self._result else ""
        last = next((line for line in reversed(lines) if line.strip().startswith("return")), "")
        names = _names(re.sub(r" @\d+$", "", last))
        return iter([Value(name, kind) for name in names or ["None"]])

    def nodes(self):
        """The calls, ifs and loops of the function, those inside of blocks left out."""
        _, _, lines = self._body()
        return iter(
            [
                n
                for line in lines
                if line.startswith("  ") and line[2:3] not in (" ", "}") and (n := _node(line.strip()))
            ]
        )

    def findAllNodes(self, kind, recurse=True):
        """Those of a kind, of all functions of the program and inside of blocks too."""
        found = [n for line in self.splitlines() if line.startswith("  ") and (n := _node(line.strip()))]
        return [n for n in (found if recurse else self.nodes()) if n.kind() == kind]

    def findNode(self, kind, recurse=True):
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def copy(self):
        return self
