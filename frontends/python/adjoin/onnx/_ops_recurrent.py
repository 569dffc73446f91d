"""adjoin.onnx._ops_recurrent: RNN, GRU and LSTM as nodes of ONNX say them: one call where the registry has the layer, else step by step."""

import adjoin
from adjoin.nn import functional as F

from ._ops import op

_BENT = {
    "sigmoid": adjoin.sigmoid, "tanh": adjoin.tanh, "relu": adjoin.relu, "softsign": F.softsign, "softplus": F.softplus,
    "affine": lambda x, a=1.0, b=0.0: a * x + b, "leakyrelu": lambda x, a=0.01: adjoin.where(x < 0, a * x, x),
    "thresholdedrelu": lambda x, a=1.0: adjoin.where(x > a, x, 0.0), "scaledtanh": lambda x, a=1.0, b=1.0: a * adjoin.tanh(b * x),
    "hardsigmoid": lambda x, a=0.2, b=0.5: (a * x + b).clamp(0, 1), "elu": lambda x, a=1.0: adjoin.where(x < 0, a * (adjoin.exp(x) - 1), x),
}  # fmt: skip
_TAKES = {"affine": 2, "leakyrelu": 1, "thresholdedrelu": 1, "scaledtanh": 2, "hardsigmoid": 2, "elu": 1}


def _bends(c, count, usual):
    names = [n.lower() for n in c.attribute("activations") or usual]
    alphas, betas = list(c.attribute("activation_alpha") or []), list(c.attribute("activation_beta") or [])
    made = []
    for name in names:
        takes = _TAKES.get(name, 0)
        more = [alphas.pop(0)] if takes and alphas else []
        more += [betas.pop(0)] if takes == 2 and betas and more else []
        made.append(lambda x, f=_BENT[name], more=tuple(more): f(x, *more))
    return made if len(made) >= count else made * (count // len(made))


_PLAIN = {  # the layer here, the order of its gates there
    "LSTM": ("lstm", (0, 2, 3, 1)), "GRU": ("gru", (1, 0, 2)), "RNN": ("rnn_tanh", (0,)),
}  # fmt: skip


def _is_plain(c):
    """Is it a layer of the registry, which is one call?"""
    if c.has(4) or c.has(7) or c.attribute("clip") or c.attribute("input_forget", 0) or c.attribute("activations"):
        return (
            c.node.op_type == "RNN"
            and c.attribute("activations") in (["Relu"], ["Relu"] * 2, ["Tanh"], ["Tanh"] * 2)
            and not c.has(4)
        )
    return c.node.op_type != "GRU" or bool(c.attribute("linear_before_reset", 0))


def _layer(c):
    name, order = _PLAIN[c.node.op_type]
    if name == "rnn_tanh" and (c.attribute("activations") or ["Tanh"])[0] == "Relu":
        name = "rnn_relu"
    x, weight, again, bias = (c[i] for i in range(4))
    hidden, way, swapped = again.shape[-1], c.attribute("direction", "forward"), c.attribute("layout", 0)
    x = x.transpose(0, 1) if swapped else x
    x = x.flip(0) if way == "reverse" else x
    states = [c[5], c[6]] if name == "lstm" else [c[5]]
    states = [s.transpose(0, 1) if swapped and s is not None else s for s in states]
    states = [adjoin.zeros(weight.shape[0], x.shape[1], hidden, dtype=x.dtype) if s is None else s for s in states]

    def ordered(w):
        return w if len(order) == 1 else adjoin.cat([w[i * hidden : (i + 1) * hidden] for i in order])

    params = []
    for w in range(weight.shape[0]):
        params += [ordered(weight[w]), ordered(again[w])]
        if bias is not None:
            half = bias.shape[1] // 2
            params += [ordered(bias[w][:half]), ordered(bias[w][half:])]
    run = getattr(adjoin, name)
    made = run(
        x,
        states if name == "lstm" else states[0],
        params,
        bias is not None,
        1,
        0.0,
        False,
        way == "bidirectional",
        False,
    )
    y = made[0].flip(0) if way == "reverse" else made[0]
    y = y.reshape(*y.shape[:2], weight.shape[0], hidden)
    if swapped:
        return (y.transpose(0, 1), *(e.transpose(0, 1) for e in made[1:]))
    return (y.transpose(1, 2), *made[1:])


@op("RNN", "GRU", "LSTM")
def _recurrent(c):
    kind = c.node.op_type
    if _is_plain(c):
        return _layer(c)
    x, weight, again, bias, lengths = (c[i] for i in range(5))
    hidden, way = c.attribute("hidden_size", again.shape[-1]), c.attribute("direction", "forward")
    ways = 2 if way == "bidirectional" else 1
    usual = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}[kind]
    bends = _bends(c, len(usual) * ways, usual * ways)
    if c.attribute("layout", 0):
        x = x.transpose(0, 1)
    batch = x.shape[1]
    states = [c[5], c[6]] if kind == "LSTM" else [c[5]]
    if c.attribute("layout", 0):
        states = [s if s is None else s.transpose(0, 1) for s in states]
    peeps, edge = c[7] if kind == "LSTM" else None, c.attribute("clip")
    outs, ends = [], [[] for _ in states]
    for w in range(ways):
        backward = way == "reverse" or w == 1
        now = [adjoin.zeros(batch, hidden, dtype=x.dtype) if s is None else s[w] for s in states]
        both = None if bias is None else bias[w]
        step = _STEPS[kind](
            c,
            weight[w],
            again[w],
            both,
            None if peeps is None else peeps[w],
            bends[w * len(usual) : (w + 1) * len(usual)],
            hidden,
            edge,
        )
        order = range(x.shape[0])
        made = [None] * x.shape[0]
        for t in reversed(order) if backward else order:
            new = step(x[t], now)
            if lengths is not None:
                live = (lengths > t).unsqueeze(1)
                new = [adjoin.where(live, n, o) for n, o in zip(new, now, strict=True)]
                made[t] = adjoin.where(live, new[0], adjoin.zeros_like(new[0]))
            else:
                made[t] = new[0]
            now = new
        outs.append(adjoin.stack(made))
        for kept, end in zip(ends, now, strict=True):
            kept.append(end)
    y, ends = adjoin.stack(outs, 1), [adjoin.stack(e) for e in ends]
    if c.attribute("layout", 0):
        y, ends = y.permute(2, 0, 1, 3), [e.transpose(0, 1) for e in ends]
    return (y, *ends)


def _clipped(edge):
    return (lambda x: x) if not edge else lambda x: x.clamp(-edge, edge)


def _rnn_step(c, w, r, b, peeps, bends, hidden, edge):
    clip, b = _clipped(edge), None if b is None else b[:hidden] + b[hidden:]

    def step(x, now):
        made = x @ w.t() + now[0] @ r.t()
        return [bends[0](clip(made if b is None else made + b))]

    return step


def _gru_step(c, w, r, b, peeps, bends, hidden, edge):
    clip, inner = _clipped(edge), c.attribute("linear_before_reset", 0)
    wb, rb = (0, 0) if b is None else (b[: 3 * hidden], b[3 * hidden :])
    part = [slice(i * hidden, (i + 1) * hidden) for i in range(3)]

    def step(x, now):
        (h,) = now
        ahead = x @ w.t() + wb
        back = h @ r.t() + rb
        z = bends[0](clip(ahead[:, part[0]] + back[:, part[0]]))
        reset = bends[0](clip(ahead[:, part[1]] + back[:, part[1]]))
        if inner:
            new = ahead[:, part[2]] + reset * back[:, part[2]]
        else:
            new = ahead[:, part[2]] + (reset * h) @ r[part[2]].t() + (rb if b is None else rb[part[2]])
        new = bends[1](clip(new))
        return [(1 - z) * new + z * h]

    return step


def _lstm_step(c, w, r, b, peeps, bends, hidden, edge):
    clip, b = _clipped(edge), 0 if b is None else b[: 4 * hidden] + b[4 * hidden :]
    part = [slice(i * hidden, (i + 1) * hidden) for i in range(4)]
    pi, po, pf = (0, 0, 0) if peeps is None else (peeps[s] for s in part[:3])
    coupled = c.attribute("input_forget", 0)

    def step(x, now):
        h, cell = now
        gates = x @ w.t() + h @ r.t() + b
        i = bends[0](clip(gates[:, part[0]] + pi * cell))
        f = 1 - i if coupled else bends[0](clip(gates[:, part[2]] + pf * cell))
        new = f * cell + i * bends[1](clip(gates[:, part[3]]))
        o = bends[0](clip(gates[:, part[1]] + po * new))
        return [o * bends[2](new), new]

    return step


_STEPS = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}
