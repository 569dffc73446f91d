"""bench/gpu/model/predict.py: a bound on the time of what is queued on an H200, from machine code, from the bytes that a kernel
reaches, and from counts of launches. A kernel takes at least as long as each of these alone:

- memory: the bytes of all tensors that its arguments name, once each way, at the rate that a sum of two arrays reaches;
- issue: the instructions of its loop for as many bytes, at one instruction a clock for each of the four schedulers of a processor;
- latency: what is on its way at once (threads that are resident, each with the loads that follow each other in its loop) in the
  time that memory needs to answer;
- the matrix unit, for products: its instructions at the rate of mma.sync, beside what shared memory brings in the meantime.

Between two kernels of a stream the card needs a moment. What a vendor's library does is taken at a fixed share of its limit.
"""

import collections
import re

# An H200 (SXM): NVIDIA's data sheet and the programming guide; marked * are measured by others on an H100 or H200.
PROCESSORS, SCHEDULERS, CLOCK = 132, 4, 1.83e9
THREADS, BLOCKS, REGISTERS, SHARED = 2048, 32, 65536, 228 << 10
BANDWIDTH = 4.3e12  # * bytes a second, of 4.8e12 on paper
LATENCY = 800e-9  # * of memory that is busy
MATRIX = 790e12  # * operations a second of bf16 that products reach, of 989e12
PLAIN = 60e12  # * of float32 without the matrix unit, of 67e12
SYNCHRONOUS = 0.62  # * of the matrix unit's rate, by mma.sync
SHARED_RATE = 128  # bytes a clock of a processor
BETWEEN = 1.5e-6  # * seconds from a kernel's end to the next one's start
LIBRARY = 0.9  # * of their limit, products by cuBLASLt
FIRST_ARGUMENT = 528  # bytes of a kernel's constants before its arguments, from sm_90 on
OPERATIONS = 4096  # of HMMA.16816, two halves' product and sum

Bound = collections.namedtuple("Bound", "seconds by")  # by: what bounds it
BOTH_WAYS = {"Adam": 28 / 16}  # what is read and written in place: bytes moved by those that the tensors have
MATRIX_TYPES = {2, 14}  # cudaDataType_t: half, bfloat16


def loop_of(kernel):
    """The loop that moves most, of those within no other; without one, the whole kernel."""
    moved = lambda loop: loop["load_bytes"] + loop["store_bytes"]  # noqa: E731
    best = max(kernel["loops"], key=moved, default=None)
    return best if best and moved(best) else kernel["all"]


def resident(kernel, threads, blocks):
    """Threads that run at once."""
    registers = max(kernel["registers"], 16) * threads
    by_shared = SHARED // kernel["shared"] if kernel["shared"] else BLOCKS
    at_once = min(BLOCKS, THREADS // threads, REGISTERS // registers, by_shared)
    return threads * min(blocks, PROCESSORS * max(at_once, 1))


def occupancy(kernel, threads):
    return resident(kernel, threads, 1 << 30) / (PROCESSORS * THREADS)


def reached(line, kernel):
    """Bytes of the tensors that a launch's arguments name, of those that its code reads."""
    pieces, used = {}, kernel["arguments"]
    for offset, begin, size in re.findall(r" (\d+):(\d+):(\d+)", line):
        at = int(offset) + FIRST_ARGUMENT
        if at < kernel["constant"] and (used is None or at in used):
            pieces[begin] = int(size)
    return sum(pieces.values()) * next((f for word, f in BOTH_WAYS.items() if word in kernel["name"]), 1)


def matrix_time(loop, flops):
    """By the loop of a product: each scheduler's clocks for the operations of its matrix instructions."""
    matrix = loop["matrix"] * OPERATIONS / (1024 * SYNCHRONOUS)
    others = loop["instructions"]
    shared = loop["shared_bytes"] * 32 / (SHARED_RATE / SCHEDULERS)
    clocks = max(matrix, others, shared)
    of = {matrix: "matrix unit", others: "instructions", shared: "shared memory"}[clocks]
    return Bound(flops / (loop["matrix"] * OPERATIONS) * clocks / (PROCESSORS * SCHEDULERS * CLOCK), of)


def second_pass(line, before):
    """The launch without the large pieces that the one before has read: where it has a 16th of the blocks, it reads what that left."""
    if not before.startswith("kernel") or 16 * int(line.split()[1]) > int(before.split()[1]):
        return line
    read = set(re.findall(r" \d+:(\d+:\d{7,})", before))
    return re.sub(r" \d+:(\d+:\d+)", lambda piece: "" if piece[1] in read else piece[0], line)


def kernel_bound(line, kernel, flops):
    """A launch: "kernel BLOCKS THREADS SHARED OFFSET:BEGIN:BYTES... NAME"; flops: of a product, else 0."""
    blocks, threads = map(int, line.split()[1:3])
    bytes_, loop = reached(line, kernel), loop_of(kernel)
    moved = loop["load_bytes"] + loop["store_bytes"]
    steps = bytes_ / moved if moved else 0  # of one thread each, all together
    running = resident(kernel, threads, blocks)
    bounds = [Bound(bytes_ / BANDWIDTH, "memory")]
    products = [loop for loop in kernel["loops"] if loop["matrix"]]
    if flops and products:
        bounds.append(matrix_time(max(products, key=lambda each: each["matrix"]), flops))
    elif steps:
        bounds.append(Bound(steps / 32 * loop["instructions"] / (PROCESSORS * SCHEDULERS * CLOCK), "instructions"))
        flying = max(loop["in_flight"], kernel["all"]["in_flight"]) or loop["store_bytes"]
        loaded = bytes_ * (loop["load_bytes"] or moved) / moved
        bounds.append(Bound(loaded / (running * flying) * LATENCY, "latency"))
    return max(bounds)


def product_bound(line):
    """ "product TYPE ROWS COLUMNS INNER BATCH", by the vendor's library."""
    kind, *sizes = map(int, line.split()[1:])
    flops = 2
    for size in sizes:
        flops *= size
    element = {0: 4, 1: 8, 2: 2, 4: 8, 5: 16, 14: 2}[kind]
    rows, columns, inner, batch = sizes
    memory = element * batch * (rows * columns + rows * inner + columns * inner) / BANDWIDTH
    rate = MATRIX if kind in MATRIX_TYPES else PLAIN
    return max(Bound(flops / rate / LIBRARY, "the library"), Bound(memory, "memory"))


def name_of(line):
    """The kernel's name; "" of other work."""
    return re.sub(r"^kernel \d+ \d+ \d+(?: \d+:\d+:\d+)* ", "", line) if line.startswith("kernel") else ""


def bound(lines, kernels, matrix_flops):
    """(seconds, what bounds most of them, launches, their kernels) of what a case queues; matrix_flops(name): of a product of ours."""
    total, by, names, launches = 0.0, collections.Counter(), [], 0
    for before, line in zip(["", *lines], lines, strict=False):
        kind = line.split(" ", 1)[0]
        if kind == "kernel":
            name = name_of(line)
            one = kernel_bound(second_pass(line, before), kernels[name], matrix_flops(name))
            names.append(name)
        elif kind == "product":
            one = product_bound(line)
        elif kind in ("fill", "copy"):
            one = Bound(int(line.split()[1]) * (1 if kind == "fill" else 2) / BANDWIDTH, "memory")
        else:
            return None  # a library's, of which nothing is known
        launches += 1
        total += one.seconds + BETWEEN
        by[one.by] += one.seconds
        by["launches"] += BETWEEN
    return total, by.most_common(1)[0][0] if by else "", launches, names
