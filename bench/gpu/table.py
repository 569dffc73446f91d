"""bench/gpu/table.py: the steps, in the order in which they run, and the seconds that each has at most."""

import collections

# Without "python", a step needs no package adjoin: it drives the command alone.
Step = collections.namedtuple("Step", "name limit what python")

STEPS = [
    Step("module", 300, "does the package adjoin load in this Python? else its native part is compiled here", False),
    Step("limits", 120, "versions; rates of copies and products on this card, the limits of all that follows", True),
    Step("kernels", 120, "a call of each family of kernels beside the processor", True),
    Step("conform", 540, "every row: values, layouts, dtypes, derivatives, beside the reference backend", False),
    Step("demo", 180, "the digits, five networks; losses beside the processor's", True),
    Step("gpt", 120, "a small GPT; losses beside the processor's", True),
    Step("rows", 60, "who computes each row: a kernel of its own, a body, or nobody", False),
    Step("streams", 60, "streams, events, pinned memory, waits", True),
    Step("graphs", 60, "captured graphs: training steps, dropout, a full card", True),
    Step("faults", 60, "bad indices, refused memory, fork: what is told", True),
    Step("sanitizer", 480, "NVIDIA's compute-sanitizer over a call of each family of kernels", True),
    Step("predicted", 300, "what each case takes, beside the bound that the machine code gives", True),
    Step("beside", 540, "beside PyTorch on this card: ratios of time, shares of the limits", True),
    Step("rebuild", 540, "the plugin compiled anew by this machine's nvcc, for this card alone", False),
]
