"""tests/plugins/shadow_test.py: every op on two backends; the first difference stops."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import adjoin

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "abi"))
from abi_tools import TWICE, build_plugin

shadow = adjoin.testing.shadow


def network():
    nn = adjoin.nn
    adjoin.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(36, 10)
    )
    optimizer = adjoin.optim.AdamW(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        x, y = adjoin.randn(8, 1, 8, 8), adjoin.randint(0, 10, (8,))
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_training_step_is_the_same_with_and_without_it():
    plain = network()
    with shadow("reference") as s:
        watched = network()
    assert watched == plain  # not even random numbers are drawn otherwise
    assert s.compared > 50
    assert network() == plain


def test_all_forms_of_calls_are_compared():
    x = adjoin.randn(5, 7)
    with shadow() as s:
        x.add_(1)
        adjoin.exp(x, out=adjoin.empty(0))
        adjoin.sort(x, dim=1)
        x.split(2)
        adjoin.zeros(3), adjoin.arange(5), adjoin.rand(4)
        x[x > 0]
        x.to(adjoin.bfloat16) * 2
        x.to(adjoin.complex64).abs()
        adjoin.empty(3)
        generator = adjoin.Generator().manual_seed(5)
        first = adjoin.rand(6, generator=generator)
    assert s.compared >= 10 and s.left_out >= 1
    assert first.tolist() == adjoin.rand(6, generator=adjoin.Generator().manual_seed(5)).tolist()


def test_errors_are_those_of_the_op():
    with shadow(), pytest.raises(RuntimeError, match="inner sizes"):
        adjoin.ones(2, 3) @ adjoin.ones(2, 3)
    assert (adjoin.ones(2) + 1).tolist() == [2, 2]


def test_limits_are_kept():
    x = adjoin.randn(1000)
    with shadow(ulp=0, scale_ulp=0):
        x + x
    with pytest.raises(
        AssertionError, match=r"shadow: sin on cpu and on reference differ: .* ULP, 0 are allowed; \d+ of 1000"
    ):
        with shadow(ulp=0):
            adjoin.sin(x * 50)


# acme::twice is 2 x, but for one element in the middle when the kernel's key is "reference".
WRONG = (
    TWICE.replace('k.key = AJ_STR_LIT("cpu");', "k.key.data = key; k.key.len = strlen(key);")
    .replace("const char* op, int32_t priority", "const char* op, const char* key, aj_kernel_fn fn")
    .replace("k.priority = priority;\n  k.fn = twice;", "k.fn = fn;")
    + """
static aj_status* wrong(void* self, aj_call* call) {
  twice(self, call);
  *(float*)((char*)call->plan->ops[0].data + 5 * call->plan->ops[0].strides[0]) += 1;
  return 0;
}
"""
)
DEFINE = """
  aj_status* bad = define_op(env, "acme::twice(Tensor x) -> Tensor");
  if (!bad) bad = define_kernel(env, "acme::twice", "cpu", twice);
  if (!bad) bad = define_kernel(env, "acme::twice", "reference", wrong);
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    return build_plugin(tmp_path_factory.mktemp("acme"), extra=WRONG, init=DEFINE + "return bad;")


def test_the_first_difference_is_named(acme):
    adjoin.load_plugin(acme)
    twice = adjoin.ops.acme.twice
    x = adjoin.arange(12).to(adjoin.float32).reshape(3, 4)
    with pytest.raises(AssertionError) as caught:
        with shadow():
            y = x + 1
            twice(y)
    told = str(caught.value)
    assert told.startswith("shadow: acme::twice on cpu and on reference differ: result 0, element [1, 1]: 12 and 13, ")
    assert told.endswith("ULP, 16 are allowed; 1 of 12 differ; called with float32 [3, 4]")
    assert twice(x).tolist() == (2 * x).tolist()  # outside nothing is watched


def test_the_environment_watches_a_whole_program(acme):
    program = f"import adjoin; adjoin.load_plugin({str(acme)!r}); print((adjoin.ones(3) + 1).tolist()); adjoin.ops.acme.twice(adjoin.ones(8))"
    got = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "ADJOIN_SHADOW": "reference"},
    )
    assert got.stdout == "[2.0, 2.0, 2.0]\n" and "AssertionError: shadow: acme::twice" in got.stderr
