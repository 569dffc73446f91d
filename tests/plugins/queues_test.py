"""tests/plugins/queues_test.py: a device's streams, events, queued copies, pinned memory and captured graphs, and several
devices in one graph; each stream lags, so an order that nobody promised shows."""

import adjoin
import adjoin.nn.functional as F
import pytest
import several_devices
from adjoin import _accelerator, nn

configure = adjoin.ops.emulated.configure if adjoin._C.find_op("emulated::configure") else None
pytestmark = pytest.mark.skipif(configure is None, reason="the plugin emulated is not built: no Boost.Context")
module = adjoin.get_device_module("emulated") if configure else None


@pytest.fixture(autouse=True)
def lag():
    yield
    configure("hang=0 delay_us=0 deadline_ms=0")


def hold():
    """The next work that is queued stands still until it is let go; who waits for it meanwhile gets an error."""
    configure("hang=1 deadline_ms=30000")


def let_go():
    configure("hang=0 deadline_ms=0")


def test_a_queued_copy_comes_back_before_the_bytes_are_there():
    x = adjoin.arange(1000.0).pin_memory("emulated")
    y = adjoin.zeros(1000, device="emulated")
    back = adjoin.zeros(1000).pin_memory("emulated")
    module.synchronize()
    hold()
    y.copy_(x, non_blocking=True)
    back.copy_(y + 1, non_blocking=True)
    assert not module.current_stream().query() and back.tolist() == [0.0] * 1000
    let_go()
    module.synchronize()
    assert adjoin.equal(back, x + 1)


def test_what_is_not_pinned_is_copied_at_once():
    x = adjoin.arange(1000.0)
    configure("delay_us=20000")
    y = x.to("emulated", non_blocking=True)
    x.zero_()
    assert y.cpu().tolist() == list(range(1000))


def test_pinned_tensors():
    x = adjoin.arange(6.0).reshape(2, 3).t()
    p = x.pin_memory("emulated")
    assert p.is_pinned() and p[1:].is_pinned() and not x.is_pinned() and adjoin.equal(p, x) and p.device.type == "cpu"
    assert p.pin_memory("emulated").data_ptr() == p.data_ptr()
    assert adjoin.empty(0).pin_memory("emulated").shape == (0,)
    assert x.to(adjoin.bool).pin_memory("emulated").dtype == adjoin.bool
    with pytest.raises(RuntimeError, match="only memory of the host can be pinned; the tensor is on emulated:0"):
        adjoin.ones(1, device="emulated").pin_memory("emulated")
    with pytest.raises(NotImplementedError, match="device reference copies without pinned memory"):
        x.pin_memory("reference")


def test_pinned_memory_is_not_handed_out_while_a_copy_reads_it():
    y = adjoin.zeros(2000, device="emulated")
    module.synchronize()
    x = adjoin.ones(2000).pin_memory("emulated")
    at = x.data_ptr()
    hold()
    y.copy_(x, non_blocking=True)
    del x
    other = adjoin.full((2000,), 7.0).pin_memory("emulated")
    assert other.data_ptr() != at
    let_go()
    assert y.sum().item() == 2000
    del other
    again = [adjoin.zeros(2000).pin_memory("emulated") for _ in range(2)]
    assert at in [t.data_ptr() for t in again]  # now it is


def test_events_order_streams():
    a, b = module.Stream(), module.Stream()
    x = adjoin.ones(500, device="emulated")
    module.synchronize()
    configure("delay_us=3000")
    with a:
        for _ in range(5):
            x = x * 2
        done = a.record_event()
    with b:
        b.wait_event(done)
        y = x + 1
    b.synchronize()
    assert done.query() and y.cpu().tolist() == [33.0] * 500


def test_memory_handed_between_streams_is_not_reused_too_early():
    a = module.Stream()
    module.synchronize()
    total = adjoin.zeros(400, device="emulated")
    module.synchronize()
    for i in range(20):
        configure("delay_us=2000")
        x = adjoin.full((400,), float(i), device="emulated")
        a.wait_stream(module.default_stream())
        with a:
            total += x
        x.record_stream(a)
        del x  # its memory belongs to the default stream, and a still reads it
        adjoin.full((400,), -1000.0, device="emulated")
    configure("delay_us=0")
    a.synchronize()
    assert total.cpu().tolist() == [190.0] * 400


def test_copies_between_devices_wait_for_both_and_for_nobody_else():
    x = adjoin.ones(300, device="emulated:0")
    module.synchronize(0), module.synchronize(1)
    configure("delay_us=2000")
    hold()
    y = (x + 1).to("emulated:1") * 3
    x.fill_(-5)  # not before it was read
    let_go()
    assert y.cpu().tolist() == [6.0] * 300 and x.cpu().tolist() == [-5.0] * 300


def test_a_captured_step_replays():
    lin = nn.Linear(4, 4).to("emulated")
    x, out = adjoin.ones(2, 4, device="emulated"), adjoin.zeros(2, 4, device="emulated")
    graph = module.Graph()
    with adjoin.no_grad():
        want = lin(x).cpu()
        with module.graph(graph):
            out.copy_(F.relu(lin(x)))
        assert out.sum().item() == 0
        for values in (x.cpu(), x.cpu() * 3):
            x.copy_(values)
            graph.replay()
            module.synchronize()
            adjoin.testing.assert_close(out.cpu(), F.relu(lin(x)).cpu())
    assert want.shape == (2, 4)


def test_a_replay_draws_what_eager_calls_would():
    x, graph = adjoin.ones(40, device="emulated"), module.Graph()

    def step():
        return F.dropout(x, 0.5), adjoin.rand(3, device="emulated")

    module.manual_seed(3)
    eager = [[t.tolist() for t in step()] for _ in range(2)]
    module.manual_seed(3)
    with module.graph(graph):
        drawn = step()
    for wanted in eager:
        graph.replay()
        assert [t.tolist() for t in drawn] == wanted
    with pytest.raises(RuntimeError, match="generator_set: the offset must be below 2\\^63"):
        adjoin.Generator("emulated")._set(1, 1 << 63)


def test_factories_make_pinned_memory(monkeypatch):
    monkeypatch.setattr(_accelerator, "_asked", ["emulated"])
    x = adjoin.ones(2, 3)
    for t in (
        adjoin.zeros(3, pin_memory=True),
        adjoin.rand(2, 2, pin_memory=True),
        adjoin.tensor([1.0, 2.0], pin_memory=True),
        adjoin.empty_like(x, pin_memory=True),
        x.new_full((2,), 7.0, pin_memory=True),
    ):
        assert t.is_pinned() and t.is_leaf and not t.requires_grad
    t = adjoin.full((2,), 3.0, pin_memory=True, requires_grad=True)
    assert t.is_pinned() and t.requires_grad and t.tolist() == [3, 3]
    assert adjoin.zeros(2, pin_memory=True, device="meta").is_meta and not adjoin.zeros(2, pin_memory=False).is_pinned()
    with pytest.raises(RuntimeError, match="only memory of the host can be pinned"):
        adjoin.zeros(2, pin_memory=True, device="emulated")


def test_what_cannot_be_captured_is_told():
    x = adjoin.ones(3, device="emulated")
    module.synchronize()
    graph = module.Graph()
    with pytest.raises(RuntimeError, match="the stream is being captured, so nothing runs that could be waited for"):
        with module.graph(graph):
            x.sum().item()
    graph.reset()
    assert x.sum().item() == 3


def test_four_devices_in_one_graph():
    several_devices.check(["cpu", "emulated:0", "emulated:1", "reference"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.rest = nn.ModuleList([nn.Sequential(nn.ReLU(), nn.Linear(3, 3).to("emulated:1"))])

    def forward(self, x):
        return self.rest[0](self.first(x))


def test_mixed_devices_name_op_argument_module_and_both_devices():
    net = Net()
    with pytest.raises(adjoin.DeviceMismatchError) as told:
        net(adjoin.ones(2, 3))
    words = str(told.value)
    assert words.startswith(("linear: argument '", "addmm: argument '")) and "cpu" in words and "emulated:1" in words
    assert words.endswith("in module 'rest.0.1' (Linear)") and told.value.module is net.rest[0][1]
    with pytest.raises(adjoin.DeviceMismatchError, match="argument '.*' is on .*emulated:0.*; in module Linear$"):
        net.first(adjoin.ones(2, 3, device="emulated:0"))
    with pytest.raises(RuntimeError, match="argument 'other' is on emulated:1, the others are on emulated:0"):
        adjoin.ones(2, device="emulated:0") + adjoin.ones(2, device="emulated:1")
