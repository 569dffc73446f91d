"""tests/compat/random_programs.py: random programs of views, in-place ops and recorded ops
run on Adjoin and on PyTorch: values, gradients, second gradients and refusals must agree.

A step that both refuse is dropped, a step that one refuses is a failure. Some differences are wanted
(core/tape/README.md) and kept out of the programs: a write that is not recorded does not spoil
the results of split and the like, a view made with recording off does not require grad, and what
shares memory with the tensor to write is refused more strictly. What a constant overwrote gets no
gradient instead of zeros, so what lies behind it is not looked at: there only PyTorch may refuse, as
where detach_() took a saved input off the tape (here only second derivatives refuse that).
"""

import random

import adjoin
import torch

STEPS = 14

SHAPES = [(4,), (2, 3), (3, 2), (2, 2, 2), (1, 4), (3, 1), (6,)]
UNARY = ["sin", "cos", "tanh", "sigmoid", "neg", "relu", "square", "exp"]
IN_PLACE_UNARY = ["sin_", "tanh_", "sigmoid_", "neg_", "relu_", "exp_", "square_", "zero_"]
BINARY = ["add", "sub", "mul"]


class Value:
    """The same tensor in both libraries, and what decides whether a step is kept out."""

    def __init__(self, pair, store, root, odd=False, born=0, silent=False):
        self.pair, self.store, self.root = pair, store, root  # root: what a history belongs to
        self.odd, self.born, self.silent = odd, born, silent

    @property
    def shape(self):
        return tuple(self.pair[1].shape)


def tame(name, v):
    """The sine of a large number is made of its last digits, in which two libraries differ: another function."""
    far = v.pair[1].numel() and float(v.pair[1].detach().abs().max()) > 1e5
    return name.replace("sin", "tanh").replace("cos", "tanh") if far else name


class Program:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.values, self.leaves, self.log = [], [], []
        self.clock = 0
        self.writes = []  # (store, when, the root that recorded it or None)
        self.overwritten = False  # was a recorded tensor overwritten, wholly or in part?

    # Making and choosing tensors

    def numbers(self, shape):
        n = 1
        for s in shape:
            n *= s
        return [round(self.rng.uniform(-1.5, 1.5), 3) for _ in range(n)]

    def new(self, shape, requires_grad):
        data = self.numbers(shape)
        pair = []
        for lib in (adjoin, torch):
            t = lib.tensor(data, dtype=lib.float64).reshape(shape).clone()
            pair.append(t.requires_grad_() if requires_grad else t)
        self.log.append(f"v{len(self.values)} = tensor({data}).reshape({shape})" + ".requires_grad_()" * requires_grad)
        v = Value(pair, object(), object())
        self.values.append(v)
        if requires_grad:
            self.leaves.append(v)
        return v

    def usable(self, v, recording):
        """Is the outcome of using v the same by intention?"""
        if not recording:
            return True
        if v.odd and any(
            store is v.store and when >= v.born and root is not v.root for store, when, root in self.writes
        ):
            return False
        return not (v.silent and self.requires(v))

    def requires(self, v):
        base = v.pair[1]._base
        return v.pair[1].requires_grad or (base is not None and base.requires_grad)

    # Running one step on both

    def both(self, text, run, recording=True, lenient=False):
        """Runs a step; the results as a pair, or None if both refuse it."""
        got, errors = [], []
        for i, lib in enumerate((adjoin, torch)):
            try:
                with lib.set_grad_enabled(recording):
                    got.append(run(i, lib))
                errors.append(None)
            except (RuntimeError, IndexError) as e:
                got.append(None)
                errors.append(e)
        prefix = "" if recording else "with no_grad(): "
        self.log.append(prefix + text + ("  # refused" if errors[1] else ""))
        if errors[1] and (lenient or "detached in-place" in str(errors[1])):
            return None
        if (errors[0] is None) != (errors[1] is None):
            raise AssertionError(self.text(f"adjoin: {errors[0]!r}\ntorch: {errors[1]!r}"))
        return None if errors[1] else got

    def text(self, why):
        return "\n".join([*self.log, str(why)])

    def check_values(self):
        for i, v in enumerate(self.values):
            ours, theirs = v.pair
            if tuple(ours.shape) != tuple(theirs.shape):
                raise AssertionError(self.text(f"v{i}: shape {ours.shape} against {theirs.shape}"))
            if not close(ours.detach(), theirs.detach()):
                raise AssertionError(self.text(f"v{i}: {ours.tolist()} against {theirs.tolist()}"))
            if not (v.odd or v.silent or ours.requires_grad == theirs.requires_grad):
                raise AssertionError(self.text(f"v{i}: requires_grad {ours.requires_grad}"))

    # Kinds of steps

    def add(self, pair, like=None, odd=False, silent=False, root=None):
        store = like.store if like else object()
        root = root or (like.root if like else object())
        self.values.append(Value(pair, store, root, odd, self.clock, silent))

    def unary(self, v, k, recording):
        name = tame(self.rng.choice(UNARY), v)
        pair = self.both(
            f"v{len(self.values)} = v{k}.{name}()",
            lambda i, lib: getattr(v.pair[i], name)(),
            recording,
        )
        if pair:
            self.add(pair)

    def binary(self, v, k, recording):
        w, j = self.choose(recording)
        name = self.rng.choice(BINARY)
        pair = self.both(
            f"v{len(self.values)} = v{k}.{name}(v{j})",
            lambda i, lib: getattr(v.pair[i], name)(w.pair[i]),
            recording,
        )
        if pair and pair[1].numel() <= 64:
            self.add(pair)

    def view(self, v, k, recording):
        text, run = self.a_view(v)
        pair = self.both(f"v{len(self.values)} = v{k}{text}", lambda i, lib: run(v.pair[i]), recording)
        if pair:
            copied = pair[1].untyped_storage().data_ptr() != v.pair[1].untyped_storage().data_ptr()
            if copied:
                self.add(pair)
            else:
                self.add(pair, v, v.odd or not recording, v.silent or not recording)

    def a_view(self, v):
        rng, shape = self.rng, v.shape
        n = len(shape)
        d = rng.randrange(n) if n else 0
        kind = rng.choice(
            [
                "index",
                "slice",
                "step",
                "transpose",
                "view",
                "unsqueeze",
                "squeeze",
                "expand",
                "narrow",
                "flatten",
                "permute",
                "reshape",
                "diagonal",
                "ellipsis",
            ]
        )
        if kind == "index" and n:
            i = rng.randrange(shape[d]) if shape[d] else 0
            return f".select({d}, {i})", lambda t: t.select(d, i)
        if kind in ("slice", "narrow") and n and shape[d] > 1:
            a = rng.randrange(shape[d] - 1)
            m = rng.randint(1, shape[d] - a)
            return f".narrow({d}, {a}, {m})", lambda t: t.narrow(d, a, m)
        if kind == "step" and n:
            return "[::2]", lambda t: t[::2]
        if kind == "ellipsis" and n:
            return "[..., 0]", lambda t: t[..., 0]
        if kind == "transpose" and n > 1:
            e = rng.randrange(n)
            return f".transpose({d}, {e})", lambda t: t.transpose(d, e)
        if kind == "permute" and n > 1:
            order = rng.sample(range(n), n)
            return f".permute({order})", lambda t: t.permute(*order)
        if kind in ("view", "reshape"):
            size = rng.choice([(-1,), (2, -1), (-1, 2), (1, -1)])
            return f".{kind}({size})", lambda t: getattr(t, kind)(*size)
        if kind == "unsqueeze":
            return f".unsqueeze({d})", lambda t: t.unsqueeze(d)
        if kind == "squeeze":
            return ".squeeze()", lambda t: t.squeeze()
        if kind == "expand":
            size = [2, *shape] if n < 3 else [4 if s == 1 else s for s in shape]
            return f".expand({size})", lambda t: t.expand(*size)
        if kind == "diagonal" and n > 1:
            return ".diagonal()", lambda t: t.diagonal()
        return ".view_as(itself)", lambda t: t.view_as(t)

    def several_views(self, v, k, recording):
        if not v.shape:
            return
        d = self.rng.randrange(len(v.shape))
        name, arg = self.rng.choice([("split", 1), ("split", 2), ("chunk", 2), ("unbind", None)])
        args = (d,) if arg is None else (arg, d)
        lists = self.both(
            f"v{len(self.values)}, ... = v{k}.{name}{args}",
            lambda i, lib: getattr(v.pair[i], name)(*args),
            recording,
        )
        if lists:
            assert len(lists[0]) == len(lists[1]), self.text("different numbers of results")
            for pair in list(zip(*lists))[:4]:
                self.add(list(pair), v, True, v.silent or not recording)

    def in_place(self, v, k, recording):
        rng = self.rng
        kind = rng.choice(["number", "unary", "tensor", "tensor", "copy", "item", "fill"])
        j, w = -1, None
        if kind in ("tensor", "copy", "item"):
            w, j = self.choose(recording, lambda w: w.store is not v.store)
            if w is None:
                return
        number = round(rng.uniform(-1.5, 1.5), 2)
        if kind == "number":
            name = rng.choice(["mul_", "add_"])
            text, run = f"v{k}.{name}({number})", lambda i, lib: getattr(v.pair[i], name)(number)
        elif kind == "unary":
            name = tame(rng.choice(IN_PLACE_UNARY if v.pair[1].is_contiguous() else IN_PLACE_UNARY[:-1]), v)
            text, run = f"v{k}.{name}()", lambda i, lib: getattr(v.pair[i], name)()
        elif kind == "fill" and v.pair[1].is_contiguous():  # PyTorch fills expanded tensors too
            text, run = f"v{k}.fill_({number})", lambda i, lib: v.pair[i].fill_(number)
        elif kind == "item":
            text, run = f"v{k}[0] = v{j}", lambda i, lib: v.pair[i].__setitem__(0, w.pair[i])
        elif w is None:
            return
        else:
            name = "copy_" if kind == "copy" else rng.choice(["mul_", "add_", "sub_"])
            text, run = f"v{k}.{name}(v{j})", lambda i, lib: getattr(v.pair[i], name)(w.pair[i])
        if recording and self.requires(v):
            # PyTorch refuses a view whose history is not yet made anew until somebody looks at it
            write, run = run, lambda i, lib: (v.pair[i].grad_fn, write(i, lib))
        recorded = recording and (self.requires(v) or (w is not None and self.requires(w)))
        if self.both(text, run, recording) is None:
            return
        self.writes.append((v.store, self.clock, v.root if recorded else None))
        if recorded and any(word in text for word in ("fill_", "zero_", "copy_", "[0] =")):
            self.overwritten = True

    def detach(self, v, k, recording):
        if self.rng.random() < 0.25:
            if v.pair[1]._is_view() or any(w is not v and w.store is v.store for w in self.values):
                return
            self.both(f"v{k}.detach_()", lambda i, lib: v.pair[i].detach_())
            self.leaves = [w for w in self.leaves if w is not v]
            return
        pair = self.both(f"v{len(self.values)} = v{k}.detach()", lambda i, lib: v.pair[i].detach())
        self.add(pair, v, root=object())

    def choose(self, recording, also=lambda v: True):
        found = [(v, k) for k, v in enumerate(self.values) if self.usable(v, recording) and also(v)]
        return self.rng.choice(found) if found else (None, -1)

    def step(self):
        self.clock += 1
        recording = self.rng.random() < 0.8
        v, k = self.choose(recording)
        kinds = [
            self.unary,
            self.binary,
            self.view,
            self.view,
            self.several_views,
            self.in_place,
            self.in_place,
            self.in_place,
            self.detach,
        ]
        if self.rng.random() < 0.08 or v is None:
            self.new(self.rng.choice(SHAPES), self.rng.random() < 0.5)
        else:
            self.rng.choice(kinds)(v, k, recording)

    # Gradients at the end

    def loss(self):
        found = [(v, k) for k, v in enumerate(self.values) if self.usable(v, True)]
        chosen = self.rng.sample(found, min(len(found), 4))
        weights = [self.numbers(v.shape) for v, _ in chosen]

        def run(i, lib):
            total = None
            for (v, _), w in zip(chosen, weights):
                part = (v.pair[i] * lib.tensor(w, dtype=lib.float64).reshape(v.shape)).sum()
                part = part + (v.pair[i] * v.pair[i]).sum()
                total = part if total is None else total + part
            return total

        return self.both(f"loss of {['v%d' % k for _, k in chosen]}", run)

    def gradients(self):
        loss = self.loss()
        if loss is None or not self.leaves:
            return
        if not loss[1].requires_grad:
            assert not loss[0].requires_grad, self.text("our loss requires grad")
            return

        def grads(i, lib, **how):
            return lib.autograd.grad(loss[i], [v.pair[i] for v in self.leaves], allow_unused=True, **how)

        mode = self.rng.choice(["twice", "second", "once"])
        if mode == "second":
            self.second(grads)
            return
        for retain in [True, False] if mode == "twice" else [False]:
            got = self.both(
                f"grad(loss, retain_graph={retain})",
                lambda i, lib: grads(i, lib, retain_graph=retain),
                lenient=self.overwritten,
            )
            if got is None:
                return
            self.compare("gradient", got)

    def second(self, grads):
        first = self.both(
            "grad(loss, create_graph=True)",
            lambda i, lib: grads(i, lib, create_graph=True),
            lenient=self.overwritten,
        )
        if first is None:
            return
        self.compare("gradient", first)
        again = [[g for g in side if g is not None and g.requires_grad] for side in first]
        if not again[0] and not again[1]:
            return

        def run(i, lib):
            total = sum((g * g).sum() for g in again[i])
            if not again[i]:
                return [None] * len(self.leaves)
            return lib.autograd.grad(total, [v.pair[i] for v in self.leaves], allow_unused=True)

        got = self.both("grad of the gradients", run, lenient=self.overwritten)
        if got:
            self.compare("second gradient", got)

    def compare(self, what, got):
        for v, ours, theirs in zip(self.leaves, *got):
            zeros = torch.zeros(v.shape, dtype=torch.float64)
            theirs = zeros if theirs is None else theirs.detach()
            ours = zeros if ours is None else ours.detach()
            if not close(ours, theirs):
                raise AssertionError(
                    self.text(f"{what} of v{self.values.index(v)}: {ours.tolist()} against {theirs.tolist()}")
                )

    def run(self):
        for _ in range(2):
            self.new(self.rng.choice(SHAPES), True)
        self.new(self.rng.choice(SHAPES), False)
        for _ in range(STEPS):
            self.step()
        self.check_values()
        self.gradients()
        self.check_values()


def close(ours, theirs):
    a = torch.tensor(ours.tolist(), dtype=torch.float64)
    b = torch.tensor(theirs.tolist(), dtype=torch.float64)
    return torch.allclose(a, b, rtol=1e-8, atol=1e-10, equal_nan=True)
