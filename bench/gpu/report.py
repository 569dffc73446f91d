"""bench/gpu/report.py: gpu-report.json and gpu-report.md, written anew after each step; a later run goes on with them."""

import datetime
import json
import os
import platform
import sys

from table import STEPS

RESULTS = ("passed", "failed", "killed", "left out")  # the others are run again


def write_whole(path, text):
    """All of it or nothing, whoever interrupts."""
    new = path.with_suffix(path.suffix + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def number(value):
    """Counts whole, measures with four digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


class Report:
    def __init__(self, folder, card, contents):
        self.folder = folder.resolve()
        self.page, self.file = self.folder / "gpu-report.md", self.folder / "gpu-report.json"
        self.folder.mkdir(parents=True, exist_ok=True)
        made = {key: contents.get(key, "a checkout") for key in ("commit", "made")}
        self.facts = {"card": card.name, "device": card.device, "simulated": card.simulated, **made}
        self.steps = {}
        if self.file.exists():
            self.go_on()
        self.facts["lines"] = card.lines
        self.facts["machine"] = f"{platform.platform()}, {os.cpu_count()} processors, Python {sys.version.split()[0]}"
        self.write()

    def go_on(self):
        """Takes the results of an earlier run, which must be of the same card and archive."""
        try:
            old = json.loads(self.file.read_text(encoding="utf-8"))
            facts, steps = old["facts"], old["steps"]
        except (ValueError, KeyError) as error:
            raise ValueError(
                f"{self.file} cannot be read ({error}); move it away, or name another folder: --out"
            ) from error
        for key, value in self.facts.items():
            if facts.get(key) != value:
                raise ValueError(
                    f"the report in {self.folder} is of another run: {key} was {facts.get(key)!r} and is {value!r} now; "
                    "move it away, or name another folder: --out"
                )
        self.steps = steps

    def has(self, name):
        return self.steps.get(name, {}).get("state") in RESULTS

    def good(self, names, left_out=True):
        fine = ("passed", "left out") if left_out else ("passed",)
        return all(self.steps.get(name, {}).get("state") in fine for name in names)

    def add(self, step, state, why="", seconds=0.0, entries=()):
        now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        self.steps[step.name] = {
            "state": state, "why": why, "seconds": round(seconds, 1), "when": now, "entries": list(entries),
        }  # fmt: skip
        self.write()

    def counted(self, name):
        checks = [e for e in self.steps[name]["entries"] if e["kind"] == "check"]
        return sum(e["ok"] for e in checks), sum(not e["ok"] for e in checks)

    def told(self, name):
        """One line about a step."""
        entry = self.steps.get(name)
        if not entry:
            return "not run"
        good, bad = self.counted(name)
        words = [
            entry["state"],
            f"{good} checks hold" + (f", {bad} do not" if bad else ""),
            f"{entry['seconds']:.0f} s",
        ]
        return "; ".join(words + [entry["why"]] * bool(entry["why"]))

    def last_line(self):
        states = [self.steps.get(step.name, {}).get("state", "not run") for step in STEPS]
        counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
        return f"== {len(STEPS)} steps: {counts}; the report: {self.page}"

    def write(self):
        write_whole(self.file, json.dumps({"facts": self.facts, "steps": self.steps}, indent=1) + "\n")
        write_whole(self.page, "".join(line + "\n" for line in self.lines()))

    def lines(self):
        facts = self.facts
        yield f"# Adjoin on {facts['card']}"
        yield ""
        if facts["simulated"]:
            yield "**This card is simulated on the processor (tests/plugins/paper_card). No figure here is a card's; nothing"
            yield "here shows that a kernel's machine code is right.**"
            yield ""
        yield f"Commit {facts['commit']}, packed {facts['made']}. {facts['machine']}."
        yield ""
        yield "| step | result | checks hold | do not | s | what |"
        yield "|---|---|---|---|---|---|"
        for step in STEPS:
            entry = self.steps.get(step.name)
            good, bad = self.counted(step.name) if entry else ("", "")
            result = f"**{entry['state']}**" if entry and entry["state"] not in ("passed", "left out") else ""
            result = result or (entry["state"] if entry else "not run")
            yield f"| {step.name} | {result} | {good} | {bad} | {entry['seconds'] if entry else ''} | {step.what} |"
        for step in STEPS:
            if step.name in self.steps:
                yield from self.section(step)
        yield ""
        yield "## What the plugin says"
        yield "```text"
        yield from facts["lines"]
        yield "```"

    def section(self, step):
        entry = self.steps[step.name]
        entries = entry["entries"]
        yield ""
        yield f"## {step.name}"
        if entry["why"]:
            yield f"{entry['state']}: {entry['why']} (all of it: {step.name}.log)"
        for e in entries:
            if e["kind"] == "check" and not e["ok"]:
                yield f"- **does not hold:** {e['name']}: {e['told']}"
            elif e["kind"] == "left out":
                yield f"- left out: {e['name']}: {e['why']}"
        good = [
            e["name"] + (f" ({e['told']})" if e["told"] else "") for e in entries if e["kind"] == "check" and e["ok"]
        ]
        if good:
            yield "- holds: " + "; ".join(good)
        figures = [e for e in entries if e["kind"] == "figure"]
        if figures:
            yield ""
            yield "| figure | value | | beside |"
            yield "|---|---|---|---|"
        for e in figures:
            yield f"| {cell(e['name'])} | {number(e['value'])} | {e['unit']} | {cell(e['beside'])} |"
