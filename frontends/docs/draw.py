#!/usr/bin/env python3
"""frontends/docs/draw.py: writes the drawings of the site and of the README: draw.py [FOLDER].

A drawing is narrow, so that a phone shows its words at a size that people read. Its colours follow the page where it is part of
one (furo's variables), and the system's choice of light or dark where it is an image.
"""

import html
import pathlib
import sys

WIDE = 480
STYLE = """
  .aj { --aj-ink: var(--color-foreground-primary, #1f2328); --aj-soft: var(--color-foreground-secondary, #57606a);
    --aj-line: var(--color-foreground-border, #8c959f); --aj-box: var(--color-background-secondary, #f6f8fa);
    --aj-mark: var(--color-brand-primary, #0a58ca); font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 15px }
  @media (prefers-color-scheme: dark) { .aj { --aj-ink: var(--color-foreground-primary, #e6edf3);
    --aj-soft: var(--color-foreground-secondary, #9da7b3); --aj-line: var(--color-foreground-border, #6e7681);
    --aj-box: var(--color-background-secondary, #161b22); --aj-mark: var(--color-brand-primary, #6cb6ff) } }
  .aj text { fill: var(--aj-ink) } .aj .soft { fill: var(--aj-soft); font-size: 13px } .aj .head { font-weight: 600 }
  .aj .mark { fill: var(--aj-mark) } .aj .code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px }
  .aj rect { fill: var(--aj-box); stroke: var(--aj-line) } .aj rect.own { stroke: var(--aj-mark); stroke-dasharray: 5 4 }
  .aj path { fill: none; stroke: var(--aj-line); stroke-width: 1.5 } .aj path.back { stroke: var(--aj-mark) }
  .aj .tip { fill: var(--aj-line); stroke: none } .aj .tip.back { fill: var(--aj-mark) }
"""


class Drawing:
    """Boxes, words and arrows; y grows downwards."""

    def __init__(self, title):
        self.title = title
        self.parts = []
        self.high = 0

    def text(self, x, y, words, kind="", anchor="middle"):
        shown = html.escape(words, quote=False)
        self.parts.append(f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{shown}</text>')

    def box(self, x, y, wide, high, head="", lines=(), kind="", anchor="middle"):
        """A box with a heading and softer lines beneath it, in the middle of its height."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="6" class="{kind}"/>')
        at = x + (wide / 2 if anchor == "middle" else 12)
        top = y + (high - 18 * len(lines) - (18 if head else 0)) / 2
        if head:
            self.text(at, top + 15, head, "head", anchor)
            top += 18
        for k, line in enumerate(lines):
            self.text(at, top + 14 + 18 * k, line, "soft", anchor)
        self.high = max(self.high, y + high)

    def arrow(self, *points, kind=""):
        """A line through the points with a tip at its end; its last piece is level or upright."""
        (x0, y0), (x1, y1) = points[-2:]
        dx, dy = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
        bent = " ".join(f"{x},{y}" for x, y in [*points[:-1], (x1 - 6 * dx, y1 - 6 * dy)])
        self.parts.append(f'<path d="M{bent}" class="{kind}"/>')
        a, b = (x1 - 8 * dx + 5 * dy, y1 - 8 * dy + 5 * dx), (x1 - 8 * dx - 5 * dy, y1 - 8 * dy - 5 * dx)
        corners = " ".join(f"{x},{y}" for x, y in [(x1, y1), a, b])
        self.parts.append(f'<polygon points="{corners}" class="tip {kind}"/>')

    def svg(self):
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="aj" role="img" viewBox="0 0 {WIDE} {self.high + 8}" '
            f'width="{WIDE}" height="{self.high + 8}">'
        )
        return "\n".join(
            [head, f"<title>{html.escape(self.title)}</title>", f"<style>{STYLE}</style>", *self.parts, "</svg>", ""]
        )


def parts():
    d = Drawing("The parts: frontends, the core, plugins, and the contract between them")
    for k, name in enumerate(("Python", "C++", "C, Lua, Rust", "adjoin")):
        d.box(8 + 118 * k, 8, 110, 44, name, ["the command"] if name == "adjoin" else [])
    d.text(8, 82, "the contract: tables of C functions", "soft mark", "start")
    d.arrow((440, 56), (440, 96))
    d.box(
        8,
        98,
        464,
        104,
        "libadjoin.so",
        [
            "tensors, views and memory · the registry of ops",
            "the call: shapes, dtypes, plans, threads",
            "the autograd tape · the loader of plugins",
        ],
    )
    d.arrow((440, 206), (440, 246))
    d.text(8, 232, "the same contract; each file is loaded at its first use", "soft mark", "start")
    rows = (("cpu", "onednn", "cuda", "hip"), ("reference", "emulated", "shadow", "yours"))
    for j, row in enumerate(rows):
        for k, name in enumerate(row):
            d.box(8 + 118 * k, 250 + 48 * j, 110, 40, name, kind="own" if name == "yours" else "")
    return d


CALL = (
    ("c = a + b", "Python’s number slot holds the op", ""),
    ("read the arguments", "a program that was made from the op’s schema", ""),
    ("keys", "each tensor tells its device; scopes add theirs, e.g. autocast", ""),
    ("keys above the tape", "plugins and modes may change the call", ""),
    ("the tape", "a gradient is wanted: node, edges, saved values", "own"),
    ("keys below the tape", "tensors of a plugin’s own kind", ""),
    ("choose the kernel", "the device’s providers, the op’s body, the fallback policy", ""),
    ("shape, dtype, memory", "one function per op; the plan joins dimensions", ""),
    ("run the kernel", "the plugin’s inner loop; the core cuts it for threads", "own"),
    ("the result", "returned to Python as an object", ""),
)


def call():
    d = Drawing("A call: what happens between a + b and its result")
    for k, (head, line, kind) in enumerate(CALL):
        y = 8 + 66 * k
        d.box(8, y, 464, 48, head, [line], kind)
        if k:
            d.arrow((240, y - 18), (240, y))
    return d


def tape():
    d = Drawing("The tape: forward calls record nodes, backward walks them from the last to the first")
    d.text(120, 24, "forward: ops run and record", "soft")
    d.text(372, 24, "backward: the latest node first", "soft mark")
    steps = (
        ("x", "a leaf: requires_grad", "x.grad", "the sum of what arrives"),
        ("y = x * x", "saves x", "g * x, twice", "reads x, checks its version"),
        ("z = y.exp()", "saves its result z", "g * z", "frees z after its use"),
        ("loss = z.sum()", "keeps the shape alone", "g spread out", "a view, no new memory"),
    )
    for k, (name, saves, grad, note) in enumerate(steps):
        y = 38 + 84 * k
        d.box(8, y, 216, 56, name, [saves])
        d.box(256, y, 216, 56, grad, [note], "own")
        if k:
            d.arrow((116, y - 28), (116, y))
            d.arrow((364, y), (364, y - 28), kind="back")
    d.arrow((224, 38 + 84 * 3 + 28), (256, 38 + 84 * 3 + 28), kind="back")
    d.text(240, 38 + 84 * 3 + 78, "loss.backward() starts here with the gradient 1", "soft")
    d.high += 26
    return d


LOADING = (
    ("somebody asks for device “acme”", "or for an op of its space, or for a service", None),
    ("find the file", "$ADJOIN_PLUGIN_PATH, the plugin folder, packages", "nobody has it: names that are alike"),
    ("read the note", "data in a section; no code of the plugin runs", "refused: no note, other machine"),
    ("compare the contract", "the version that it was built for and needs", "refused: needs ABI 1.7"),
    ("trust", "may others write to the file or its folder?", "refused: who may write"),
    ("ask the policy", "lock files, ADJOIN_PLUGINS", "disabled by policy"),
    ("open it", "its own symbols stay its own", "failed: which library is missing"),
    ("init", "ops, kernels, device: all of it, or nothing", "failed: what init said"),
    ("active", "the call goes on", None),
)


def loading():
    d = Drawing("Loading a plugin: each step may refuse it with a reason that is kept")
    for k, (head, line, refused) in enumerate(LOADING):
        y = 8 + 78 * k
        d.box(8, y, 464, 48, head, [line], "own" if head == "init" else "")
        if k:
            d.arrow((60, y - 30), (60, y))
        if refused:
            d.text(76, y + 68, "or " + refused, "soft mark", "start")
    d.text(240, 8 + 78 * len(LOADING), "“adjoin plugins why acme” repeats the reason; an import never fails", "soft")
    d.high += 26
    return d


DRAWINGS = {"parts": parts, "call": call, "tape": tape, "loading": loading}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "drawings"
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in DRAWINGS.items():
        (folder / f"{name}.svg").write_text(make().svg())


if __name__ == "__main__":
    main()
