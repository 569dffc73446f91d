"""tests/lint/sass.py: what the machine code of a CUDA library says of each kernel, read with NVIDIA's disassembler.

`read(library)` gives a dict for each function: registers, stack, which loads and stores it has, what stands in its loops.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile

PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("nvidia/*/bin", "triton/backends/nvidia/bin")  # nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm, triton

SECTION = re.compile(r"^\.text\.(\S+):$")
LABEL = re.compile(r"^(\.L_\w+):$")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(@!?\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;$")
TARGET = re.compile(r"\.L_\w+")
CALLED = re.compile(r"`\((\S+)\)")
USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) .*?(?:CONSTANT\[0\]:(\d+)|$)")
DIVISION = re.compile(r"__cuda_sm20_(?:div|rem)_[su]64")
WIDE_INDEX = "divide_wide"  # where an index is too large for 32 bits; nothing else goes there
LOAD = re.compile(r"LDG?\.")
STORE = re.compile(r"STG?\.")
MATRIX = re.compile(r"[HIDQ]G?MMA")
PLAIN = re.compile(r"(?:FFMA|HFMA2|DFMA)")
LOCAL = re.compile(r"(?:LDL|STL)")
STACK_POINTER = re.compile(r"R1, R1, (?:-0x|0xf{4})")  # moved down: a frame begins
ASYNCHRONOUS = re.compile(r"LDGSTS\.")  # from memory to shared memory
SHARED = re.compile(r"(?:LDSM?|STS)(?:\.|$)")
NARROW = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
CONSTANT = re.compile(r"\bc\[0x0\]\[(\w+\s*\+\s*)?(0x[0-9a-f]+)\]")  # where arguments are
REGISTER = re.compile(r"\bR(\d+)\b")


def width(operation):
    """The bytes that a load or a store moves for a thread."""
    if operation.startswith("LDSM"):  # an 8x8 matrix of halves is 4 bytes a thread
        return 4 * int(operation.rsplit(".", 1)[-1]) if operation[-1] in "24" else 4
    return next((NARROW[part] for part in operation.split(".")[1:] if part in NARROW), 4)


def tool(name):
    """The path of a tool of the CUDA toolkit, or None."""
    folders = [os.environ.get("ADJOIN_CUDA_TOOLS"), *PLACES]
    for packages in (*ROOT.glob(".venv/lib/python3*/site-packages"), pathlib.Path(sysconfig.get_path("purelib"))):
        folders += [found for pattern in PACKAGES for found in sorted(packages.glob(pattern))]
    for folder in filter(None, folders):
        if os.access(path := os.path.join(folder, name), os.X_OK):
            return path
    return shutil.which(name)


def lines_of(*command, cwd=None):
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: exit code {done.returncode}: {done.stderr.strip()[:400]}")
    return done.stdout.splitlines()


def sources(library):
    """The kernel sources of a library in the order in which they were linked, which is that of its machine code."""
    files = [line.split()[-1] for line in lines_of("readelf", "-sW", str(library)) if " FILE " in line]
    found = [re.search(r"(?:-\d+_)?(\w+)\.cudafe1\.cpp$", file) for file in files]
    return [each[1].removeprefix("cuda_") for each in found if each]


def read(library):
    """(functions, compiler, {architecture: bytes of machine code}) of a library or an object of nvcc's."""
    functions, compilers, sizes = [], set(), {}
    names = sources(library)
    with tempfile.TemporaryDirectory() as folder:
        lines_of(tool("cuobjdump"), "-xelf", "all", str(pathlib.Path(library).resolve()), cwd=folder)
        cubins = sorted(pathlib.Path(folder).iterdir(), key=lambda path: int(path.name.split(".")[-3]))
        places = {}
        for cubin in cubins:
            arch = cubin.name.split(".")[-2]
            place = places[arch] = places.get(arch, -1) + 1
            code = cubin.read_bytes()
            sizes[arch] = sizes.get(arch, 0) + len(code)
            compilers |= {each.decode() for each in re.findall(rb"compilation tools, release (\d+\.\d+)", code)}
            source = names[place] if place < len(names) else f"{place}"
            functions += [{"arch": arch, "source": source} | each for each in read_cubin(cubin)]
        if any(count + 1 != len(names) for count in places.values()):
            raise RuntimeError(f"{library}: {len(names)} sources of kernels, {len(cubins)} pieces of machine code")
    return functions, " ".join(sorted(compilers)), sizes


def read_some(library, arch, wanted):
    """{name: what it is} of the kernels with these names alone: seconds instead of minutes."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        lines_of(tool("cuobjdump"), "-xelf", "all", str(pathlib.Path(library).resolve()), cwd=folder)
        for cubin in pathlib.Path(folder).glob(f"*.{arch}.cubin"):
            symbols = [line.split() for line in lines_of("readelf", "-sW", str(cubin)) if " FUNC " in line]
            plain = demangled(symbol[-1] for symbol in symbols)
            some = [symbol[0].rstrip(":") for symbol, name in zip(symbols, plain, strict=True) if name in wanted]
            if some:
                found |= {each["name"]: each for each in read_cubin(cubin, "-fun", ",".join(some))}
    return found


def read_cubin(cubin, *options):
    """What each function of a piece of machine code is."""
    bodies = bodies_of(lines_of(tool("nvdisasm"), "-c", "-ndf", *options, str(cubin)))
    plain = dict(zip(bodies, demangled(bodies), strict=True))
    divides = {name for name, body in bodies.items() if any(DIVISION.search(t) for t in body.called)}
    grown = True
    while grown:  # functions that call such functions
        more = {name for name, body in bodies.items() if divides & {t for t in body.called if WIDE_INDEX not in t}}
        grown = not more <= divides
        divides |= more
    usage = usages(cubin)
    return [
        {"name": plain[name], "framed": sorted(plain[each] for each in reached(bodies, name) if bodies[each].frame)}
        | usage.get(name, {"kernel": False})
        | body.measures(divides)
        for name, body in bodies.items()
    ]


def reached(bodies, name):
    """The functions that a function calls, and those that they call."""
    found, waiting = set(), [name]
    while waiting:
        more = {each for each in bodies[waiting.pop()].called if each in bodies} - found
        found |= more
        waiting += more
    return found


def usages(cubin):
    found, name = {}, None
    for line in lines_of(tool("cuobjdump"), "-res-usage", str(cubin)):
        if line.startswith(" Function "):
            name = line[10:].rstrip(":")
        elif name and (numbers := USAGE.search(line)):
            found[name] = dict(zip(("registers", "stack", "shared"), map(int, numbers.groups()[:3]), strict=True))
            found[name]["kernel"] = bool(numbers[4])  # which has arguments of its own
            found[name]["constant"] = int(numbers[4] or 0)  # their bytes and what goes before them
    return found


def demangled(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def bodies_of(lines):
    bodies, body = {}, None
    for line in lines:
        if begin := SECTION.match(line):
            body = bodies[begin[1]] = Body()
        elif body is None:
            continue
        elif label := LABEL.match(line):
            body.labels[label[1]] = len(body.code)
        elif found := INSTRUCTION.match(line):
            body.add(bool(found[1]), found[2], found[3])
    return bodies


class Body:
    """The instructions of a function: (has a condition, operation, operands)."""

    def __init__(self):
        self.code, self.labels, self.called = [], {}, set()
        self.frame = False

    def add(self, condition, operation, operands):
        self.code.append((condition, operation, operands))
        self.frame |= bool(STACK_POINTER.match(operands) or LOCAL.match(operation))
        if operation.startswith("CALL") and (target := CALLED.search(operands)):
            self.called.add(target[1])

    def edges(self):
        """{instruction: the instructions that may follow}, of those that the function's start reaches."""
        follow, waiting = {}, [(0, ())]
        while waiting:
            at, meeting = waiting.pop()
            while at < len(self.code) and at not in follow:
                condition, operation, operands = self.code[at]
                jumps = [self.labels[label] for label in TARGET.findall(operands) if label in self.labels]
                on = condition
                if operation.startswith("BSSY"):  # where the threads meet again
                    meeting = (
                        *(m for m in meeting if m[0] != operands.split(",")[0]),
                        (operands.split(",")[0], *jumps),
                    )
                    jumps, on = [], True
                elif operation.startswith("BSYNC"):
                    jumps = [m[1] for m in meeting if m[0] == operands and len(m) > 1]
                    on = condition or not jumps
                elif operation.startswith(("BRA", "JMP", "BRX")):
                    on = condition or "," in operands.split("`")[0]
                elif not operation.startswith(("EXIT", "RET", "CALL.REL", "CALL.ABS")):
                    jumps, on = [], True
                elif operation.startswith("CALL"):
                    jumps, on = [], True
                follow[at] = [to for to in (*jumps, *([at + 1] if on else [])) if to != at]
                waiting += [(to, meeting) for to in jumps]
                if not on:
                    break
                at += 1
        return follow

    def measures(self, divides):
        follow = self.edges()
        outer = loops(follow, follow)
        within = {at for loop in outer for at in loop}
        inner = [loop for each in outer for loop in innermost(follow, each)]
        kinds = [operation for _, operation, _ in self.code]
        wide = [".128" in kind for kind in kinds]
        calls = {t[1] for at in within if kinds[at].startswith("CALL") and (t := CALLED.search(self.code[at][2]))}
        count = lambda loop, kind: sum(bool(kind.match(kinds[at])) for at in loop)  # noqa: E731
        return {
            "instructions": len(kinds),
            "frame": self.frame,
            "loads": any(map(LOAD.match, kinds)),
            "loads_wide": any(w and LOAD.match(k) for w, k in zip(wide, kinds, strict=True)),
            "stores_wide": any(w and STORE.match(k) for w, k in zip(wide, kinds, strict=True)),
            "local_in_loops": count(within, LOCAL),
            "divides_in_loops": any(DIVISION.search(t) or (t in divides and WIDE_INDEX not in t) for t in calls),
            "matrix_in_loops": count(within, MATRIX),
            "loops": [
                {
                    "loads": count(loop, LOAD), "matrix": count(loop, MATRIX), "plain": count(loop, PLAIN),
                    "wide": sum(wide[at] and bool(LOAD.match(kinds[at])) for at in loop),
                } | self.moved(loop)
                for loop in inner
            ],
            "all": self.moved(follow),
            "arguments": self.arguments(),
        }  # fmt: skip

    def moved(self, places):
        """What instructions at these places move for a thread: bytes, and most of them on their way at once."""
        kinds = [self.code[at][1] for at in places]
        loads = [k for k in kinds if LOAD.match(k) or ASYNCHRONOUS.match(k)]
        return {
            "instructions": len(kinds),
            "load_bytes": sum(map(width, loads)),
            "store_bytes": sum(width(k) for k in kinds if STORE.match(k)),
            "shared_bytes": sum(width(k) for k in kinds if SHARED.match(k)),
            "in_flight": self.in_flight(places),
        }

    def arguments(self):
        """Which bytes of the constants are read; None: some are found by an index."""
        read = set()
        for _, operation, operands in self.code:
            for index, offset in CONSTANT.findall(operands):
                if index:
                    return None
                read |= set(range(int(offset, 16), int(offset, 16) + width(operation)))
        return sorted(read)

    def in_flight(self, places):
        """The most bytes of loads that follow each other before something reads what one of them brings."""
        most = bytes_ = 0
        waited = set()
        for at in sorted(places):
            _, operation, operands = self.code[at]
            if not waited.isdisjoint(REGISTER.findall(operands)):
                bytes_, waited = 0, set()
            if LOAD.match(operation):
                first = int(REGISTER.findall(operands)[0]) if REGISTER.search(operands) else 0
                waited |= {str(first + i) for i in range(max(1, width(operation) // 4))}
            if LOAD.match(operation) or ASYNCHRONOUS.match(operation):
                bytes_ += width(operation)
                most = max(most, bytes_)
        return most


def loops(follow, nodes):
    """The sets of instructions that reach themselves (strongly connected, by Tarjan, without recursion)."""
    nodes = set(nodes)
    order, low, on, stack, found = {}, {}, set(), [], []
    for root in nodes:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        on.add(root)
        stack.append(root)
        path = [(root, iter(follow[root]))]
        while path:
            at, ways = path[-1]
            for to in ways:
                if to not in nodes:
                    continue
                if to not in order:
                    order[to] = low[to] = len(order)
                    on.add(to)
                    stack.append(to)
                    path.append((to, iter(follow[to])))
                    break
                if to in on:
                    low[at] = min(low[at], order[to])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[at])
                if low[at] == order[at]:
                    group = set()
                    while at not in group:
                        group.add(last := stack.pop())
                        on.discard(last)
                    if len(group) > 1:
                        found.append(group)
    return found


def innermost(follow, loop):
    """The loops within a loop that have no loop within them: without the ways back to where the loop begins."""
    begins = {to for at, ways in follow.items() if at not in loop for to in ways if to in loop} or {min(loop)}
    cut = {at: [to for to in follow[at] if to not in begins] for at in loop}
    inside = loops(cut, loop)
    return [each for part in inside for each in innermost(cut, part)] if inside else [loop]
