"""tests/plugins/paper_rows_test.py: every row on the simulated card, in both vendors' plugin files: no call waits for the card unless
its result is read on the host, and what has a known shape can be captured; a replay gives what the call gives."""

import json
import os
import pathlib
import random

from paper import either, run

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
SHARE = 1 if FULL else 10  # of the rows one in so many, in CI; each vendor its own
OPS = pathlib.Path(__file__).resolve().parents[1] / "ops"

# Prints [row, what, why]: "refused", "waits", "not captured", "other values", "captured".
PROGRAM = """
import json, random, sys
sys.path.insert(0, OPS)
import samples
from rows import TENSOR_ROWS, flat, on, run
def same(a, b):
    a, b = a.cpu(), b.cpu()
    return adjoin.allclose(a, b, equal_nan=True) if a.is_floating_point() or a.is_complex() else adjoin.equal(a, b)
def outcome(row):
    for given, other in list(samples.all_samples(row, row.dtypes()[0], SEED))[:2]:
        there = on(given, gpu)
        tensors = [t for v in there.values() for t in (v if isinstance(v, list) else [v]) if isinstance(t, adjoin.Tensor)]
        def call():
            return run(row, there, other)
        try:
            wanted = call()  # what is made once: tables, kernels, workspaces
        except (NotImplementedError, RuntimeError, TypeError, ValueError) as e:
            yield "refused", str(e).splitlines()[0]
            continue
        if all(t.device.type != gpu for t in [*wanted, *tensors]):
            continue
        gpus.synchronize()
        before = count("waits")
        call()
        if count("waits") > before:
            yield "waits", f"{count('waits') - before} times"
        graph = Graph()
        try:
            graph.capture_begin()
            got = call()
            graph.capture_end()
        except (NotImplementedError, RuntimeError, TypeError, ValueError) as e:
            told(graph.capture_end)
            told(gpus.synchronize)
            yield "not captured", str(e).splitlines()[0]
            continue
        graph.replay()
        gpus.synchronize()
        if row.test.get("values", True) and not all(map(same, got, wanted)):
            yield "other values", ""
        yield "captured", ""
for row in TENSOR_ROWS:
    if SHARE == 1 or row.name in ALWAYS or random.Random(f"{SEED} {gpu} {row.name}").randrange(SHARE) == 0:
        for what, why in dict(outcome(row)).items():
            print(json.dumps([row.name, what, why]), flush=True)
"""

# Rows that read the card from the host, and why. Those of the first groups cannot be captured.
WAITS = {
    "the shape of the result is in the values": """
        argwhere bincount masked_select nonzero repeat_interleave.Tensor repeat_interleave.places unique unique_consecutive
        where.nonzero""",
    "the result is the host's": "_::to_copy allclose equal is_nonzero item",
    "bounds or places are found first, by the host": """
        ctc_loss torchvision::_ps_roi_align_backward torchvision::_ps_roi_pool_backward
        torchvision::_roi_align_backward torchvision::_roi_pool_backward torchvision::ps_roi_align torchvision::ps_roi_pool
        torchvision::roi_align torchvision::roi_pool""",
    "a matrix without factors is an error of the call": """
        inverse linalg::cholesky linalg::inv linalg::lu_factor linalg::matrix_exp linalg::solve linalg::tensorinv
        linalg::tensorsolve matrix_exp""",
    "eigenvalues of any matrix: the library works on the host, too": "_::eig_stack linalg::eig linalg::eigvals",
    "wrong values are an error of the call; a capture does not look": """
        bernoulli bernoulli_.Tensor multinomial nn::binary_cross_entropy nn::gaussian_nll_loss normal normal.float_Tensor""",
    "what is in the values is found by the host; a capture does not look, and finds it on the card": """
        _::masked_put histc histogram istft masked_scatter nanmedian nanquantile nn::multilabel_margin_loss nonzero_static
        quantile""",
    "a matrix whose values are not found is an error of the call; a capture does not look": """
        _::eigh_stack _::svd_stack linalg::cond linalg::cond.name linalg::eigh linalg::eigvalsh linalg::lstsq linalg::matrix_rank
        linalg::matrix_rank.tol linalg::pinv linalg::pinv.rcond linalg::svd linalg::svdvals pinverse svd""",
    "a table is made by the host and brought to the card; a graph keeps it": """
        _::average _::average_backward _::resample _::resample_backward nn::adaptive_avg_pool3d nn::avg_pool3d nn::interpolate
        nn::local_response_norm nn::lp_pool3d""",
}
WAITS = {why: set(names.split()) for why, names in WAITS.items()}
UNCAPTURED = set().union(*list(WAITS.values())[:5])
REFUSED = ("no plugin has a kernel for", "does not serve matrices of")  # the second: hipSOLVER has no eig
ALWAYS = ["add", "nonzero", "nn::binary_cross_entropy", "nn::affine_grid", "nn::interpolate"]


@either
def test_rows_wait_for_nothing_and_are_captured(name, card):
    head = f"OPS, SEED, SHARE, ALWAYS = {str(OPS)!r}, {SEED}, {SHARE}, {ALWAYS!r}\n"
    told = {}
    for line in run(head + PROGRAM, name, card, timeout=3000).splitlines():
        row, what, why = json.loads(line)
        told.setdefault(what, {})[row] = why
    known = set().union(*WAITS.values())
    refused = told.get("refused", {})
    missing = {row: why for row, why in refused.items() if not any(words in why for words in REFUSED)}
    print(f"{name}, seed {SEED}:", {what: len(rows) for what, rows in told.items()})
    assert not missing, f"a row was refused that the card serves: {missing}"
    assert not told.get("other values"), f"a replay gives other values: {told['other values']}"
    assert set(told.get("waits", ())) <= known, f"rows that wait, and no reason is known: {set(told['waits']) - known}"
    assert set(told.get("not captured", ())) <= UNCAPTURED, {
        row: why for row, why in told["not captured"].items() if row not in UNCAPTURED
    }
    assert {"add", "nn::affine_grid", "nn::binary_cross_entropy", "nn::interpolate"} <= set(told["captured"])
    if FULL:  # the list has no row that is better than it says
        assert known - set(told["waits"]) - set(refused) == set()
        assert UNCAPTURED - set(told["not captured"]) - set(refused) == set()
        assert len(told["captured"]) > 700
