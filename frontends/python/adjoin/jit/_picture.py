"""adjoin.jit._picture: a program's text as a picture (SVG): each call a box under those whose results it takes."""

import re
from html import escape

VALUE = re.compile(r'%(?:"(?:[^"\\]|\\.)*"|[A-Za-z0-9_.]+)')
TYPE = re.compile(r" : (.*?)((?: no_grad)?(?: effect)?(?: @(\d+))?)$")
CHAR, HIGH, GAP, FLOOR = 6.6, 34, 14, 30  # of a letter; of a box; between boxes, between floors
COLOURS = {
    "input": "#e3f0e3",
    "weight": "#f3ecd9",
    "call": "#e6ecf7",
    "product": "#d3dff5",
    "write": "#f7dcdc",
    "block": "#eee6f5",
    "result": "#e3f0e3",
}
PRODUCTS = re.compile(r"(^|::)(linear|matmul|mm|bmm|addmm|baddbmm|conv\w*|einsum|scaled_dot_product_attention)$")


class Box:
    def __init__(self, kind, title, below, takes, line=""):
        self.kind, self.title, self.below, self.takes, self.line = kind, title, below, takes, line
        self.floor = self.x = 0
        self.width = max(len(title), len(below)) * CHAR + 16


def short(text, most=44):
    return text if len(text) <= most else text[: most - 1] + "…"


def boxes_of(text):
    """The boxes of a program's text, and of each value the box that makes it."""
    boxes, made, frames = [], {}, []  # frames: the box of each block around

    def add(kind, title, below, takes, gives=(), line=""):
        box = Box(kind, short(title), short(below), [], line)
        for value in takes:
            if (by := made.get(value)) is not None and by is not box and by not in box.takes:
                box.takes.append(by)
        if frames and frames[-1] not in box.takes and not box.takes:
            box.takes.append(frames[-1])
        boxes.append(box)
        for value in gives:
            made[value] = box
        return box

    for whole in text.splitlines():
        line = whole.strip()
        if line.startswith("fn "):
            for value, kind in re.findall(rf"({VALUE.pattern}): (\w+(?:\[[^\]]*\])?)", line.partition("(")[2]):
                add("input", value, kind, (), (value,))
        elif found := re.match(rf"({VALUE.pattern}) = (param|const)\w* ?(.*?) : (.*)$", line):
            add("weight", found[3].strip('"') or found[1], found[4], (), (found[1],))
        elif line.startswith(("return ", "yield ")):
            values = VALUE.findall(line)
            if line.startswith("yield") and frames:
                for value in values:
                    if (by := made.get(value)) is not None and by not in frames[-1].inside:
                        frames[-1].inside.append(by)
            else:
                add("result", "results", ", ".join(values), values)
        elif found := re.match(r"(?:(.*?) = )?(if|while) (.*)\{$", line):
            gives = VALUE.findall(found[1] or "")
            box = add("block", f"{found[2]} {found[3].strip()}", "", VALUE.findall(found[3]))
            box.gives, box.inside = gives, []
            frames.append(box)
            for value in re.findall(rf"({VALUE.pattern}) = {VALUE.pattern}", found[3]):
                made[value] = box
        elif line.startswith("} else") or line.startswith("} do"):
            pass
        elif line.startswith("}"):
            if frames:
                box = frames.pop()
                end = add("block", "end", "", (), box.gives)
                end.takes = [box, *(b for b in box.inside if b is not box)]
        elif "(" in line:
            kind = TYPE.search(line)
            body = line[: kind.start()] if kind else line
            head, equal, call = body.partition(" = ")
            gives, call = (VALUE.findall(head), call) if equal and head.startswith(("%", "[", "_")) else ([], body)
            name = call.partition("(")[0].strip()
            takes = VALUE.findall(call)
            rest = ", ".join(
                a.strip()
                for a in re.split(r",(?![^\[]*\])", call[len(name) + 1 :].rpartition(")")[0])
                if a.strip() and not a.strip().startswith("%")
            )
            writes = " into " in call or "effect" in (kind[2] if kind else "")
            style = "write" if writes else "product" if PRODUCTS.search(name) else "call"
            add(
                style,
                name + (f"({rest})" if rest else ""),
                kind[1] if kind else "",
                takes,
                gives,
                kind[3] or "" if kind else "",
            )
    return boxes


def arranged(boxes):
    """Floors by the longest way down; on a floor each box near those above it."""
    floors = []
    for box in boxes:
        box.floor = max((b.floor + 1 for b in box.takes), default=0)
        floors += [[] for _ in range(box.floor + 1 - len(floors))]
        floors[box.floor].append(box)
    for box in boxes:  # parameters stand right above their first use
        if box.kind == "weight" and (users := [b for b in boxes if box in b.takes]):
            floors[box.floor].remove(box)
            box.floor = max(0, min(b.floor for b in users) - 1)
            floors[box.floor].append(box)
    for row in floors:
        row.sort(key=lambda b: sum(t.x + t.width / 2 for t in b.takes) / len(b.takes) if b.takes else b.x)
        x = 0.0
        for box in row:
            wanted = sum(t.x + t.width / 2 for t in box.takes) / len(box.takes) - box.width / 2 if box.takes else x
            box.x = max(x, wanted)
            x = box.x + box.width + GAP
    return floors


def svg(text, source=lambda line: ""):
    """The picture; source(n) is the line of the user's program that @n stands for, which the picture tells on pointing."""
    boxes = boxes_of(text)
    if not boxes:
        raise NotImplementedError("picture: a program of calls is drawn; of a scripted one `code` is the text to read")
    floors = arranged(boxes)
    width = max(b.x + b.width for b in boxes) + 2 * GAP
    height = len(floors) * (HIGH + FLOOR) + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="11">'
    ]

    def top(b):
        return GAP + b.floor * (HIGH + FLOOR)

    for b in boxes:
        for t in b.takes:
            x1, y1, x2, y2 = t.x + t.width / 2 + GAP, top(t) + HIGH, b.x + b.width / 2 + GAP, top(b)
            out.append(
                f'<path d="M{x1:.1f} {y1:.1f} C{x1:.1f} {y1 + FLOOR / 2:.1f} {x2:.1f} {y2 - FLOOR / 2:.1f} {x2:.1f} {y2:.1f}" fill="none" stroke="#999"/>'
            )
    for b in boxes:
        x, y = b.x + GAP, top(b)
        told = source(int(b.line)) if b.line else ""
        out.append(
            f'<g><title>{escape(told or b.title)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{b.width:.1f}" height="{HIGH}" rx="5" fill="{COLOURS[b.kind]}" stroke="#666"/>'
            f'<text x="{x + 8:.1f}" y="{y + 14:.1f}">{escape(b.title)}</text><text x="{x + 8:.1f}" y="{y + 27:.1f}" fill="#666">{escape(b.below)}</text></g>'
        )
    return "\n".join([*out, "</svg>\n"])
