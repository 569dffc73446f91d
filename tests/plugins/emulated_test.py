"""tests/plugins/emulated_test.py: devices whose memory is not the host's, on a GPU made of fibres: who may touch what,
what waits for what, and what happens when something fails."""

import os
import re
import subprocess
import sys

import adjoin
import adjoin.nn.functional as F
import numpy as np
import pytest
from adjoin import nn, optim

configure = adjoin.ops.emulated.configure if adjoin._C.find_op("emulated::configure") else None
pytestmark = pytest.mark.skipif(configure is None, reason="the plugin emulated is not built: no Boost.Context")
NOTHING = "fail_alloc=0 fail_kernel=0 fail_copy=0 hang=0 delay_us=0 deadline_ms=0 blocking=0 warp=32 seed=0"
DEVICES = ("emulated:0", "emulated:1")


@pytest.fixture(autouse=True)
def no_orders():
    yield
    configure(NOTHING)


def script(text, **env):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, **env})


def test_a_host_access_faults():
    read = "import adjoin, ctypes; t = adjoin.ones(4, device='emulated'); t.sum().item()\n"
    assert script(read + "print(t.data_ptr() != 0)").stdout == "True\n"
    done = script(read + "print(ctypes.c_float.from_address(t.data_ptr()).value)")
    assert done.returncode != 0 and not done.stdout  # SIGSEGV, or a sanitizer's word about it


def test_values_come_and_go():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    t = adjoin.tensor(x).to("emulated")
    assert t.device == adjoin.device("emulated:0") and "emulated:0" in repr(t)
    assert np.array_equal(t.cpu().numpy(), x) and t.tolist() == x.tolist() and t[1, 2, 3].item() == 23
    assert np.array_equal(t.transpose(0, 2)[1:].to("emulated:1").cpu().numpy(), x.transpose(2, 1, 0)[1:])
    assert t.to(adjoin.float16).cpu().dtype == adjoin.float16
    t[0, :, 1] = 7
    assert t.cpu()[0, :, 1].tolist() == [7, 7, 7]


def test_more_dimensions_than_a_launch_walks():
    shape = [2] * 15
    x = adjoin.arange(2**15).reshape(shape)
    y = x.to("emulated").permute(list(range(14, -1, -1)))
    assert adjoin.equal((y + 1).cpu(), x.permute(list(range(14, -1, -1))) + 1)


@pytest.mark.parametrize("make", [adjoin.rand, adjoin.randn], ids=str)
@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64, adjoin.bfloat16])
def test_random_numbers_are_those_of_the_processor(make, dtype):
    drawn = []
    for device in ("cpu", *DEVICES):
        adjoin.manual_seed(7)
        drawn.append([make(n, dtype=dtype, device=device).cpu() for n in (5, 1000, 3)])
    for other in drawn[1:]:
        assert all(adjoin.equal(a, b) for a, b in zip(drawn[0], other))


def test_whole_numbers_and_dropout_are_those_of_the_processor():
    for draw in (
        lambda d: adjoin.randint(0, 1 << 40, (100,), device=d),
        lambda d: F.dropout(adjoin.ones(1000, device=d), 0.3),
    ):
        drawn = []
        for device in ("cpu", "emulated"):
            adjoin.manual_seed(3)
            drawn.append(draw(device).cpu())
        assert adjoin.equal(*drawn)


@pytest.mark.parametrize("orders", ["warp=32", "warp=64", "seed=5"])
@pytest.mark.parametrize("shape", [(5000,), (70, 130), (130, 70), (3, 40000)], ids=str)
def test_reductions_do_not_depend_on_warps_or_the_order_of_threads(shape, orders):
    x = adjoin.randn(*shape)
    t = x.to("emulated")
    results = []
    for how in (NOTHING, orders):
        configure(how)
        results.append([f(t, d).cpu() for d in range(len(shape)) for f in (adjoin.sum, adjoin.var, adjoin.softmax)])
        results[-1].append(adjoin.argmax(t).cpu())
    assert all(adjoin.equal(a, b) for a, b in zip(*results))
    np.testing.assert_allclose(results[0][0].numpy(), x.numpy().sum(0, dtype=np.float64), rtol=1e-4, atol=1e-4)


def net():
    adjoin.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )


def train(device, steps=4, optimizer=lambda p: optim.AdamW(p, lr=1e-2)):
    model = net().to(device)
    steps_of = optimizer(model.parameters())
    losses = []
    for _ in range(steps):
        adjoin.manual_seed(len(losses))
        x, y = adjoin.randn(6, 1, 8, 8, device=device), adjoin.randint(0, 5, (6,), device=device)
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        steps_of.zero_grad()
        loss.backward()
        steps_of.step()
        losses.append(loss.item())
    return losses


def test_training_gives_the_curve_of_the_processor():
    for optimizer in (lambda p: optim.AdamW(p, lr=1e-2), lambda p: optim.SGD(p, lr=0.1, momentum=0.9)):
        np.testing.assert_allclose(train("emulated", optimizer=optimizer), train("cpu", optimizer=optimizer), rtol=2e-4)


def test_delays_change_nothing():
    want = train("emulated", 2)
    configure("delay_us=100")
    assert train("emulated", 2) == want


def test_several_devices_in_one_graph():
    a = adjoin.ones(3, 4, requires_grad=True)
    b = adjoin.full((4, 2), 2.0, device="emulated:0", requires_grad=True)
    c = adjoin.full((2,), 3.0, device="emulated:1", requires_grad=True)
    out = ((a.to("emulated:0") @ b).to("emulated:1") * c).cpu().sum()
    out.backward()
    assert out.item() == 3 * 2 * 8 * 3
    assert [t.grad.device for t in (a, b, c)] == [t.device for t in (a, b, c)]
    assert a.grad.tolist() == [[12.0] * 4] * 3 and b.grad.cpu().tolist() == [[9.0] * 2] * 4
    assert c.grad.cpu().tolist() == [24.0, 24.0]


@pytest.mark.parametrize("other", ["cpu", "emulated:1"])
def test_mixed_devices_are_refused_with_both_names(other):
    x, y = adjoin.ones(2, 2, device="emulated:0"), adjoin.ones(2, 2, device=other)
    for mixed in (lambda: x + y, lambda: x @ y, lambda: adjoin.cat([x, y]), lambda: F.linear(x, y)):
        with pytest.raises(RuntimeError, match=f"emulated:0.*{other}|{other}.*emulated:0"):
            mixed()
    assert (x + adjoin.tensor(1.0)).cpu().tolist() == [[2, 2], [2, 2]]  # a number of the host may join
    assert adjoin.addmm(adjoin.tensor(1.0), x, x).cpu().tolist() == [[3, 3], [3, 3]]
    x[0] = adjoin.tensor(5.0)
    assert x.cpu().tolist() == [[5, 5], [1, 1]]


def test_a_bad_index_is_told_to_who_waits_and_the_device_goes_on():
    x = adjoin.arange(5.0).to("emulated")
    bad = x.index_select(0, adjoin.tensor([1, 9], device="emulated"))
    with pytest.raises(IndexError, match="index_select: index 9 is out of range for dimension 0 with size 5"):
        bad.sum().item()
    assert x.sum().item() == 10
    configure("blocking=1")
    with pytest.raises(IndexError, match="index 9 is out of range"):
        x.index_select(0, adjoin.tensor([1, 9], device="emulated"))


def test_out_of_memory_at_each_allocation():
    want = train("emulated:1", 2)
    for n in range(1, 100):
        configure(f"fail_alloc={n}")
        try:
            train("emulated:1", 2)
        except MemoryError as error:
            assert "emulated" in str(error)
        except RuntimeError as error:
            assert "out of memory" in str(error)
        else:
            break
    configure(NOTHING)
    assert train("emulated:1", 2) == want


def test_a_kernel_that_fails_late():
    want = train("emulated", 2)
    for n in (1, 5, 20, 50):
        configure(f"fail_kernel={n}")
        with pytest.raises(RuntimeError, match="its kernel on emulated:0 has failed, as ordered"):
            train("emulated", 2)
    assert train("emulated", 2) == want


def test_who_is_told_of_a_fault_finds_nothing_queued():
    x = adjoin.ones(3, device="emulated")
    configure("fail_kernel=1 delay_us=2000")
    for _ in range(20):
        x = x + 1
    with pytest.raises(RuntimeError, match="has failed, as ordered"):
        x.cpu()
    configure("fail_kernel=1")  # for the next kernel, and none is there
    assert adjoin.ones(3).to("emulated").cpu().tolist() == [1, 1, 1]


def test_a_copy_that_fails():
    x = adjoin.ones(3)
    configure("fail_copy=1")
    with pytest.raises(RuntimeError, match="a copy of 12 bytes has failed"):
        x.to("emulated")
    assert x.to("emulated").sum().item() == 3


def test_a_process_ends_while_kernels_run():
    """Static objects went, and the stream's thread ran on in them."""
    text = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.on_exit(libc.sleep, None)  # after the objects of what is loaded later, for as many seconds as the exit code says
import adjoin
x = adjoin.ones(1 << 18, device="emulated")
for _ in range(60):
    y = (x * 3).softmax(0)
sys.exit(1)
"""
    done = script(text)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_stream_that_hangs():
    x = adjoin.ones(3, device="emulated")
    assert x.sum().item() == 3
    configure("deadline_ms=200 hang=1")
    y = x + 1
    with pytest.raises(RuntimeError, match="has not come to its end within 200 ms.*the first is add"):
        y.sum().item()
    configure("hang=0 deadline_ms=0")
    assert y.sum().item() == 6


def test_a_whole_number_over_zero_is_told():
    x = adjoin.tensor([4, 6], device="emulated")
    with pytest.raises(RuntimeError, match="integer division by zero"):
        (x // adjoin.tensor([2, 0], device="emulated")).tolist()


def test_unknown_orders():
    with pytest.raises(RuntimeError, match="the option 'speed=9' is not understood"):
        configure("speed=9")


def test_a_forked_child_is_told_to_spawn():
    text = """
import adjoin, os
t = adjoin.ones(3, device='emulated'); t.sum().item()
if os.fork() == 0:
    try: print(t.sum().item())
    except RuntimeError as e: print('spawn' in str(e), adjoin.ones(2).sum().item(), flush=True)
    os._exit(0)
os.wait(); print(t.sum().item())
"""
    assert script(text).stdout == "True 2.0\n3.0\n"


def test_what_the_processor_has_a_kernel_for_the_gpu_has_too():
    def has(name, device):  # of the device's plugin, or of an op pack
        return re.search(rf"plugin ({device}|ops_\w+)", adjoin._C.explain_op(name, device))

    lacks = {n for n in adjoin._C.op_names() if has(n, "cpu") and not has(n, "emulated")}
    # Bodies serve: of the pairs the half of `_::cdist`, of edges
    # and constants copies, of bags rows that are added up or multiplied, of modes a sort, of masks places, of windows those with places, of what
    # is reversed a selection, of `std` the root of `var`, of powers of two products, of sums
    # beside products an addition.
    served = {
        "nn::pdist",
        "_::pad_edges",
        "_::pad_edges_backward",
        "constant_pad_nd",
        "flip",
    }
    served |= {"_::bag_sums", "_::row_products", "_::mode_place", "_::masked_put", "_::window_maxima"}
    served |= {"_::logit_backward", "std", "_::ldexp_each", "baddbmm"}
    served |= {"_::fft_c2c", "_::fft_r2c", "_::fft_c2r"}  # products with matrices of roots
    served |= {
        "_::coo_join",
        "_::csr_add",
        "_::csr_mm",
        "_::row_begins",
        "_::row_dots",
    }  # of sparse tensors: sorted, searched, added up
    # Nothing serves factorisations there, for which GPUs have libraries: a call says what to do.
    refused = {
        f"linalg::{n}"
        for n in (
            "cholesky_ex",
            "det",
            "householder_product",
            "inv_ex",
            "ldl_factor_ex",
            "lu_factor_ex",
            "qr",
            "slogdet",
        )
    }
    refused |= {f"_::{n}_stack" for n in ("eig", "eigh", "ldl_solve", "solve", "solve_triangular", "svd")} | {"geqrf"}
    assert lacks == served | refused
    with pytest.raises(NotImplementedError, match="inv: no plugin has a kernel for linalg::inv_ex on emulated"):
        adjoin.linalg.inv(adjoin.eye(2, device="emulated"))


@pytest.mark.parametrize("orders", ["warp=64", "seed=5"])
@pytest.mark.parametrize("n", [7, 1000])
def test_what_runs_along_lines_does_not_depend_on_the_order_of_threads(n, orders):
    x = adjoin.randn(3, n).to("emulated")
    where = adjoin.randint(0, 5, (3, n)).to("emulated")
    results = []
    for how in (NOTHING, orders):
        configure(how)
        found = [*x.cummax(1), *x.cummin(1), x.logcumsumexp(1), adjoin.cdist(x, x, 3.0)]
        found += [adjoin.zeros(3, 5, device="emulated").scatter_reduce(1, where, x, r) for r in ("sum", "prod", "mean")]
        found += [adjoin.unique((x * 3).round(), dim=1), adjoin.searchsorted(x.sort(1).values, x)]
        results.append([t.cpu() for t in found])
    assert all(adjoin.equal(a, b) for a, b in zip(*results))


def test_samples_of_vmap_draw_as_a_loop_would():
    """From the device's generator; that of the processor stays where it is."""
    x = adjoin.ones(3, 2, 5, 4).to("emulated")
    functions = (
        lambda a: F.dropout(a, 0.5), lambda a: a + adjoin.rand_like(a),
        lambda a: F.scaled_dot_product_attention(a, a, a, dropout_p=0.5),
    )  # fmt: skip
    for f in functions:
        runs = []
        for run in (lambda: adjoin.stack([f(a) for a in x]), lambda: adjoin.vmap(f, randomness="different")(x)):
            adjoin.manual_seed(5)
            runs.append([run().cpu(), adjoin.rand(3, device="emulated").cpu(), adjoin.rand(3)])
        assert all(adjoin.equal(a, b) for a, b in zip(*runs)) and not adjoin.equal(*runs[0][0][:2])
        same = adjoin.vmap(f, randomness="same", chunk_size=2)(x).cpu()
        assert adjoin.equal(same[0], same[1]) and adjoin.equal(same[0], same[2])


SORTED = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()


def numbers(dtype, shape):
    """Of the whole range, with equal ones; of floats also infinities, NaN and both zeros."""
    dtype = getattr(adjoin, dtype)
    if dtype.is_floating_point:
        x = (adjoin.randn(shape) * 4).round()
        for k, special in enumerate((0.0, -0.0, float("nan"), float("inf"), -float("inf"))):
            x[adjoin.rand(shape) > 0.95] = special if k else x.max() / 3
        return x.to(dtype)
    if dtype == adjoin.bool:
        return adjoin.rand(shape) > 0.5
    about = adjoin.iinfo(dtype)
    return adjoin.randint(about.min, about.max, shape).to(dtype)


@pytest.mark.parametrize("dtype", SORTED)
def test_long_lines_are_sorted_as_the_processor_does(dtype):
    """By digits: in tiles of 4,096, of which blocks take one after the other."""
    bits = {1: adjoin.uint8, 2: adjoin.int16, 4: adjoin.int32, 8: adjoin.int64}
    for shape, dim in (((8193,), 0), ((2, 12_288), 1), ((9001, 2), 0), ((2, 10_000, 1), -2)):
        x = numbers(dtype, shape)
        for descending, orders in ((False, NOTHING), (True, "warp=64 seed=5")):
            configure(orders)
            wanted = adjoin.sort(x, dim=dim, descending=descending, stable=True)
            found = adjoin.sort(x.to("emulated"), dim=dim, descending=descending, stable=True)
            assert adjoin.equal(found.indices.cpu(), wanted.indices)
            same = bits[x.element_size()]
            assert adjoin.equal(found.values.cpu().view(same), wanted.values.view(same))
    x = numbers(dtype, (9001,))
    wanted, found = (adjoin.topk(t, 4000).indices.cpu() for t in (x, x.to("emulated")))
    assert adjoin.equal(found, wanted)


@pytest.mark.parametrize(
    "dtype", [adjoin.bool, adjoin.float16, adjoin.float32, adjoin.int64, adjoin.complex128], ids=str
)
def test_copies_that_turn(dtype):
    """Through squares of shared memory: sides around those of a square, dimensions beside, memory cut out of other memory."""
    for shape, order in (
        ((16, 16), (1, 0)), ((64, 32), (1, 0)), ((33, 70), (1, 0)), ((129, 17), (1, 0)), ((3, 40, 65), (0, 2, 1)),
        ((40, 3, 65), (2, 1, 0)), ((2, 17, 16, 3, 20), (4, 2, 0, 3, 1)), ((2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 16, 16), (*range(11), 12, 11)),
    ):  # fmt: skip
        x = (adjoin.randn(shape) * 50).to(dtype)
        t = x.to("emulated")
        turned = x.permute(order).contiguous()
        assert adjoin.equal(t.permute(order).contiguous().cpu(), turned)
        to = adjoin.zeros_like(t)
        to.permute(order).copy_(turned.to("emulated"))
        assert adjoin.equal(to.cpu(), x)
        cut = [t.permute(order)[..., 1:, :-3].contiguous().cpu(), turned[..., 1:, :-3]]
        assert adjoin.equal(*cut)
        room = adjoin.zeros((*turned.shape[:-1], turned.size(-1) + 5), dtype=dtype, device="emulated")
        room[..., 2:-3] = t.permute(order)
        assert adjoin.equal(room.cpu()[..., 2:-3], turned) and not room[..., :2].any() and not room[..., -3:].any()


def test_what_is_added_at_indices_is_added_in_their_order():
    x = adjoin.zeros(50, 3)
    index = adjoin.randint(0, 50, (400,))
    values = adjoin.randn(400, 3)
    want = x.index_put((index,), values, accumulate=True)
    got = [x.to("emulated").index_put((index.to("emulated"),), values.to("emulated"), accumulate=True).cpu()]
    configure("seed=7 warp=64")
    got.append(x.to("emulated").index_put((index.to("emulated"),), values.to("emulated"), accumulate=True).cpu())
    assert adjoin.equal(*got)
    adjoin.testing.assert_close(got[0], want)
    one = adjoin.zeros(4, device="emulated").index_put((adjoin.tensor([2] * 9, device="emulated"),),
                                                       adjoin.tensor(1.0, device="emulated"), accumulate=True)  # fmt: skip
    assert one.tolist() == [0, 0, 9, 0]
