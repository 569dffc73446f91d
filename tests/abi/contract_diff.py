"""tests/abi/contract_diff.py: what changed between two contracts, in words, and which of it breaks what was built before.

Only appending is allowed: fields at the end of EXTENSIBLE structs, new functions, numbers, structs and
macros. A word called `reserved` may take a name. Comments, and names of parameters, may change freely.
"""

import re

APPEND = "fields are only appended, at the end"


def named(old, new):
    """old, with the names that reserved words have in new: the same type at the same place."""
    there = {offset: (field, kind) for field, kind, offset, _ in new["fields"]}
    rows = []
    for field, kind, offset, size in old["fields"]:
        other, same = there.get(offset, (field, kind))
        takes = re.fullmatch(r"reserved\d*", field) and kind == same
        rows.append([other if takes else field, kind, offset, size])
    return {**old, "fields": rows}


def field_changes(name, old, new):
    """Broken promises on one struct's fields."""
    before = {f: (kind, offset) for f, kind, offset, _ in old["fields"]}
    after = {f: (kind, offset) for f, kind, offset, _ in new["fields"]}
    broken, kept = [], [f for f in before if f in after]
    for field in before:
        if field not in after:
            at = list(before).index(field)
            there = list(after)[at] if at < len(after) else None
            hint = f"; '{there}' stands in its place" if there and there not in before else ""
            broken.append(f"{name}.{field} is gone{hint}: a published field stays, with its name")
        elif before[field][0] != after[field][0]:
            broken.append(f"{name}.{field} was '{before[field][0]}', is '{after[field][0]}': a type never changes")
    last = max((list(after).index(f) for f in kept), default=-1)
    for field in list(after)[:last]:
        if field not in before and len(kept) == len(before):
            broken.append(f"{name}.{field} was put in before '{list(after)[last]}': {APPEND}")
    order = [f for f in after if f in before]
    if order != kept:
        first = next(a for a, b in zip(order, kept) if a != b)
        broken.append(f"{name}.{first} stands in another place than before: fields keep their order")
    return broken


def moved(old, new):
    """Fields that stand elsewhere though no declaration explains it: packing, or another compiler's idea."""
    for name, struct in old.items():
        for (field, _, was, _), (_, _, now, _) in zip(struct["fields"], new[name]["fields"]):
            if was != now:
                yield f"{name}.{field} moved from byte {was} to {now}: a published field keeps its place"
                break


def struct_changes(name, old, new):
    """(broken, added) of one struct that both have."""
    reserved = old["fields"]
    old = named(old, new)
    names = [f"{name}.{was[0]} is {now[0]}" for was, now in zip(reserved, old["fields"]) if was != now]
    broken = field_changes(name, old, new)
    added = new["fields"][len(old["fields"]) :] if not broken else []
    if old["kind"] != new["kind"]:
        broken.append(f"{name} was {old['kind']}, is {new['kind']}")
    if old["kind"] != "EXTENSIBLE" and (added or old["size"] != new["size"]) and not broken:
        what = f"'{added[0][0]}' was added" if added else f"it had {old['size']} bytes, has {new['size']}"
        broken.append(f"{name} is {old['kind']} and changed: {what}; make a new struct with a name of its own")
    if not broken and added and added[0][2] < old["size"]:
        broken.append(f"{name}.{added[0][0]} stands in what was padding, at byte {added[0][2]} of {old['size']}")
    return broken, [] if broken else names + [f"{name}.{field}" for field, *_ in added]


def number_changes(old, new):
    """(broken, added) of the enumerators; those of one enum never share a number."""
    before = {name: number for group in old for name, number in group.items()}
    broken, added = [], []
    after = {name: number for group in new for name, number in group.items()}
    for name, number in before.items():
        if name not in after:
            broken.append(f"{name} = {number} is gone: a published number keeps its name")
        elif after[name] != number:
            broken.append(f"{name} was {number}, is {after[name]}: a published number never changes")
    for group in new:
        taken = {before[name]: name for name in group if name in before}
        for name in group:
            if name in before:
                continue
            if group[name] in taken:
                broken.append(f"{name} takes the number {group[name]}, which is {taken[group[name]]}'s")
            else:
                added.append(f"{name} = {group[name]}")
            taken[group[name]] = name
    return broken, added


def text_changes(old, new, what):
    """(broken, added) of things that are compared as text."""
    broken = []
    for name, text in old.items():
        if name not in new:
            broken.append(f"{what} {name} is gone")
        elif new[name] != text:
            broken.append(f"{what} {name} was '{text}', is '{new[name]}'")
    return broken, [f"{what} {name}" for name in new if name not in old]


def compare(old, new):
    """(broken, added): lines for people. What is broken must not be published under the same major."""
    broken = [f"header {h} is gone" for h in old["headers"] if h not in new["headers"]]
    added = []
    for name, struct in old["structs"].items():
        if name not in new["structs"]:
            broken.append(f"struct {name} is gone")
            continue
        b, a = struct_changes(name, struct, new["structs"][name])
        broken, added = broken + b, added + a
    added += [f"struct {name}" for name in new["structs"] if name not in old["structs"]]
    was, now = dict(old["macros"]), dict(new["macros"])
    minor, later = int(was.pop("AJ_ABI_MINOR")), int(now.pop("AJ_ABI_MINOR", -1))
    if later < minor:
        broken.append(f"AJ_ABI_MINOR was {minor}, is {later}: it only grows")
    for b, a in (
        number_changes(old["enums"], new["enums"]),
        text_changes(old["types"], new["types"], "type"),
        text_changes(old["functions"], new["functions"], "function"),
        text_changes(was, now, "macro"),
    ):
        broken, added = broken + b, added + a
    return broken or list(moved(old["structs"], new["structs"])), added
