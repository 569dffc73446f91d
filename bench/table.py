"""bench/table.py: the table of cases, and what each suite is wanted to reach.

A case is a statement over names that its setup makes; `per` says how many ops the statement is. Kernels say how many bytes
they must move and how many floating-point operations they must do, so that a figure can stand beside the machine's limit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Case:
    suite: str
    name: str
    statement: str
    setup: Callable  # (T) -> dict of names
    per: int = 1
    bytes: float = 0
    flops: float = 0
    dtype: str = "float32"
    rivals: dict = field(
        default_factory=dict
    )  # other libraries: a statement, and a function of no arguments that makes its names


CASES = {}


def case(suite, name, statement, setup, per=1, **work):
    assert name not in CASES, name
    CASES[name] = Case(suite, name, statement, setup, per, **work)


@dataclass
class Wanted:
    mean: float  # geometric mean of the ratios of a group
    worst: float  # each of them


# Ratios to PyTorch. A group is a suite, or several that are judged together.
WANTED = {
    "ops view create": Wanted(0.2, 0.5),
    "ew": Wanted(0.35, 1.1),
    "gemm float32": Wanted(0.85, 1.1),
    "gemm float64": Wanted(0.85, 1.1),
    "gemm bfloat16": Wanted(0.7, 1.1),
    "conv": Wanted(0.7, 1.1),
    "rnn": Wanted(0.85, 1.1),
    "attn": Wanted(0.7, 0.8),
    "optim": Wanted(1.05, 1.05),
    "train": Wanted(0.85, 0.85),
    "data": Wanted(0.5, 0.8),
    "fft": Wanted(0.45, 1.15),
    "func": Wanted(0.15, 0.65),
    "linalg": Wanted(0.3, 1.05),
    "sparse": Wanted(0.5, 0.75),
}

# Cases that are wanted to be better than their group.
SINGLY = {
    "add_64": 0.15,
    "add_64_grad": 0.12,
    "view_select": 0.15,
    "view_reshape": 0.15,
    "view_transpose": 0.15,
    "chain100_fwdbwd": 0.08,
    "backward_1op": 0.08,
    "module_linear": 0.25,
    "create_tensor_list1000": 0.2,
    "view_mask": 0.25,
    "sdpa_causal_fwd": 0.55,
    "sdpa_causal_fwdbwd": 0.55,
    "adam_default": 0.4,
    "sgd_small": 0.1,
    "adam_small": 0.1,
    "train_tiny_mlp_sgd": 0.25,
    "train_tiny_mlp_adam": 0.25,
    "train_mlp_adam": 0.75,
    "train_lenet": 0.7,
    "train_resnet18": 0.75,
    "loader_2_workers": 0.33,
    "coalesce_100000": 0.25,
    "coalesce_1000000": 0.25,
    "send_64MB": 0.2,
}

# Judged by no figure: the interpreter alone.
NOT_JUDGED = {"python_nop_call"}


def group_of(c):
    """The key of WANTED that judges a case."""
    if c.suite == "gemm":
        return f"gemm {c.dtype}"
    return next((g for g in WANTED if c.suite in g.split()), None)
