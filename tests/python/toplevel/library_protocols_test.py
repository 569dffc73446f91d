"""tests/python/toplevel/library_protocols_test.py: names by which libraries reach below the public ones: each does its work."""

import gc
import importlib.util
import pickle
import subprocess
import sys

import adjoin as torch
import pytest
from adjoin import nn
from adjoin.utils import _contextlib, _foreach_utils, weak
from adjoin.utils.data import dataloader


def test_contexts_that_decorate():
    depth = []

    class inside(_contextlib._NoParamDecoratorContextManager):
        def __enter__(self):
            depth.append(self)

        def __exit__(self, *error):
            depth.pop()

    @inside
    def plain():
        return len(depth)

    @inside()
    def steps():
        told = yield len(depth)
        try:
            yield told, len(depth)
        except KeyError:
            yield len(depth)
        return "end"

    assert plain() == 1 and not depth
    running = steps()
    assert next(running) == 1 and not depth  # outside of it between two steps
    assert running.send("told") == ("told", 1) and running.throw(KeyError()) == 1 and not depth
    with pytest.raises(StopIteration, match="end"):
        next(running)
    with pytest.raises(RuntimeError, match="is a class"):
        inside()(dict)


def test_tensors_in_groups():
    a, b = [torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)], [None] * 3
    groups = _foreach_utils._group_tensors_by_device_and_dtype([a, b], with_indices=True)
    assert list(groups) == [(a[0].device, torch.float32), (a[0].device, torch.float64)]
    (first, nones), places = groups[a[0].device, torch.float32]
    assert first == [a[0], a[2]] and nones == [None, None] and places == [0, 2]


def test_dictionaries_by_identity():
    one, two, held = torch.ones(1), torch.ones(1), weak.WeakTensorKeyDictionary()
    held[one], held[two] = "one", "two"
    assert held[one] == "one" and held[two] == "two" and len(held) == 2 and 3 not in held
    del one
    gc.collect()
    assert list(held) == [two] and len(held) == 1


def test_what_a_loader_gives():
    loader = dataloader.DataLoader([1, 2, 3])
    batches = iter(loader)
    assert isinstance(batches, dataloader._SingleProcessDataLoaderIter)
    assert isinstance(batches, dataloader._BaseDataLoaderIter) and iter(batches) is batches and len(batches) == 3
    assert [b.item() for b in batches] == [1, 2, 3] and next(batches, None) is None
    kept = dataloader.DataLoader([1, 2], num_workers=1, persistent_workers=True)
    assert kept._iterator is None and [b.item() for b in kept] == [1, 2]
    assert isinstance(kept._iterator, dataloader._MultiProcessingDataLoaderIter)
    kept._iterator._shutdown_workers()
    assert [b.item() for b in kept] == [1, 2]


def test_levels_of_vmap_by_hand():
    levels = importlib.import_module("adjoin._functorch.levels")
    seen = []

    def look(x):
        seen.append((levels.is_batchedtensor(x), levels.get_unwrapped(x).shape, levels.maybe_get_bdim(x)))
        return x

    x = torch.arange(6.0).reshape(3, 2)
    torch.vmap(look, 1)(x)
    assert seen == [(True, torch.Size([2, 3]), 0)] and not levels.is_batchedtensor(x)
    level = levels._vmap_increment_nesting(3, "error")
    inside = levels._add_batch_dim(x, 0, level) * 2
    out = levels._remove_batch_dim(inside, level, 3, 1)
    assert inside.shape == (2,) and levels._vmap_decrement_nesting() == level and out.equal(2 * x.T)


def test_records_of_a_file(tmp_path):
    torch.save({"w": torch.arange(4.0)}, tmp_path / "a.pt")
    reader = torch.PyTorchFileReader(str(tmp_path / "a.pt"))
    (name,) = [n for n in reader.get_all_records() if n.startswith("data/")]
    assert reader.has_record("data.pkl") and reader.get_record("data.pkl").startswith(b"\x80")
    assert reader.get_storage_from_record(name, 4, torch.float32).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="no record 'nix'"):
        reader.get_record("nix")
    (tmp_path / "b.pt").write_text("x")
    with pytest.raises(RuntimeError, match="no zip archive"):
        torch.PyTorchFileReader(tmp_path / "b.pt")


def test_conditions():
    torch._check(True)
    for check, kind in (
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
    ):
        with pytest.raises(kind, match="why"):
            check(False, lambda: "why")
    with pytest.raises(RuntimeError, match="zero"):
        torch._assert_async(torch.tensor(0))
    with pytest.raises(TypeError, match="bool"):
        torch._check(torch.tensor(True))
    assert torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x, (torch.ones(1),)).item() == 2
    assert torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, 1)) == (3, 8)
    assert torch.sym_max(2, 1.5) == 2.0 and isinstance(torch.sym_max(2, 1.5), float) and not isinstance(1, torch.SymInt)


def test_a_convolution_that_is_changed_after_it_was_made():
    made, changed = nn.Conv2d(1, 1, 3, padding=2, dilation=2), nn.Conv2d(1, 1, 3)
    changed.load_state_dict(made.state_dict())
    changed.padding, changed.dilation = (2, 2), (2, 2)
    x = torch.randn(1, 1, 6, 6)
    assert changed(x).equal(made(x))
    changed.padding = "same"
    assert changed(x).shape == x.shape


def test_pruning_methods():
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 1, 1], [5, 5, 5]]))
    nn.utils.prune.LnStructured.apply(layer, "weight", amount=1, n=2, dim=0)
    assert layer.weight.tolist() == [[0, 0, 0], [5, 5, 5]]
    nn.utils.prune.CustomFromMask.apply(layer, "weight", mask=torch.tensor([[1, 1, 1], [1, 0, 1]]))
    assert layer.weight.tolist() == [[0, 0, 0], [5, 0, 5]]
    other = nn.Linear(3, 2)
    nn.utils.prune.RandomStructured.apply(other, "weight", amount=1, dim=1)
    assert (other.weight_mask.sum(0) == 0).sum() == 1


def test_distributions_that_libraries_extend():
    D = torch.distributions

    class Mine(D.MultivariateNormal):
        def __init__(self, loc, scale, name):
            self.name = name
            super().__init__(loc, scale_tril=scale)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Mine, _instance)
            new.name = self.name
            return super().expand(batch_shape, _instance=new)

    wide = Mine(torch.zeros(2), torch.eye(2), "mine").expand((3,))
    assert type(wide) is Mine and wide.name == "mine" and wide.batch_shape == (3,)
    assert wide._extended_shape((5,)) == (5, 3, 2) and wide._unbroadcasted_scale_tril.equal(torch.eye(2))
    assert wide.log_prob(torch.zeros(2)).shape == (3,)
    before = D.Distribution._validate_args
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(torch.tensor(0.0), torch.tensor(-1.0))  # not looked at
    finally:
        D.Distribution.set_default_validate_args(before)
    with pytest.raises(ValueError, match="scale"):
        D.Normal(torch.tensor(0.0), torch.tensor(-1.0))


def test_members_by_name():
    names = importlib.import_module("adjoin.nn.utils._named_member_accessor")
    net = nn.Sequential(nn.Linear(2, 1))
    before = net[0].weight
    accessor = names.NamedMemberAccessor(net)
    assert accessor.swap_tensor("0.weight", torch.ones(1, 2)) is before
    assert (
        net(torch.ones(1, 2)).item() == pytest.approx(2 + net[0].bias.item())
        and accessor.get_tensor("0.weight").sum() == 2
    )


def test_an_optimizer_for_several_processes_in_one(monkeypatch):
    import adjoin.distributed.nn
    from adjoin.distributed.optim import ZeroRedundancyOptimizer

    monkeypatch.delenv("WORLD_SIZE", raising=False)
    dist = torch.distributed
    dist.init_process_group("gloo", rank=0, world_size=1, store=None, init_method="tcp://127.0.0.1:0")
    try:
        made = [nn.Linear(2, 1), nn.Linear(2, 1)]
        made[1].load_state_dict(made[0].state_dict())
        plain = torch.optim.Adam(made[0].parameters(), lr=0.1)
        divided = ZeroRedundancyOptimizer(made[1].parameters(), torch.optim.Adam, lr=0.1)
        schedules = [torch.optim.lr_scheduler.StepLR(o, 1, 0.5) for o in (plain, divided)]
        for _ in range(3):
            for net, optimizer, schedule in zip(made, (plain, divided), schedules, strict=True):
                optimizer.zero_grad()
                net(torch.ones(1, 2)).square().sum().backward()
                optimizer.step()
                schedule.step()
        assert made[0].weight.equal(made[1].weight) and divided.state_dict()["state"]
        x = torch.ones(2, requires_grad=True)
        (adjoin.distributed.nn.all_reduce(x) * 3 + adjoin.distributed.nn.all_gather(x)[0]).sum().backward()
        assert x.grad.tolist() == [4, 4]
    finally:
        dist.destroy_process_group()


@pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="SciPy is not installed")
def test_points_that_fill_a_square():
    engine = torch.quasirandom.SobolEngine(2)
    assert engine.draw(4).tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]] and engine.num_generated == 4
    assert engine.reset().fast_forward(2).draw(1).tolist() == [[0.75, 0.25]]
    assert torch.quasirandom.SobolEngine(2, scramble=True, seed=1).draw(8).unique().numel() == 16


def test_the_package_is_torch_where_a_program_is_run_so():
    code = """
    import adjoin.torch; adjoin.torch.install()
    import torch, torch.torch
    from functorch import vmap
    import torch._C._functorch
    x = torch.nn.Parameter(torch.ones(1))
    print(type(x).__module__, torch.Tensor, x.shape, x.dtype, torch.strided, torch.device, torch.torch.Tensor is torch.Tensor)
    import pickle
    assert pickle.loads(pickle.dumps([x.shape, x.dtype])) == [x.shape, x.dtype]
    """
    code = "\n".join(line.strip() for line in code.splitlines())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout == (
        "torch.nn.parameter <class 'torch.Tensor'> torch.Size([1]) torch.float32 torch.strided <class 'torch.device'> True\n"
    ), done.stderr
    assert str(torch.float32) == "adjoin.float32" and torch.Tensor.__module__ == "adjoin"


def test_arrays_of_numpy_in_a_file(tmp_path):
    np = pytest.importorskip("numpy")
    file, kept = (
        tmp_path / "a.pt",
        {"a": np.arange(6.0).reshape(2, 3), "s": np.array(["x", "yy"]), "n": np.float32(2.5)},
    )
    for protocol in (2, 4):
        torch.save(kept, file, pickle_protocol=protocol)
        again = torch.load(file, weights_only=False)
        assert all(np.array_equal(again[k], v) and again[k].dtype == v.dtype for k, v in kept.items())
        with pytest.raises(pickle.UnpicklingError, match=r"numpy.*not allowed with weights_only=True"):
            torch.load(file)


class _Huge:
    def __reduce__(self):
        import numpy as np

        return np.empty(0).__reduce__()[0], (np.ndarray, (1 << 40,), b"b")


def test_an_array_that_a_file_only_claims_takes_no_memory(tmp_path):
    pytest.importorskip("numpy")
    torch.save(_Huge(), tmp_path / "a.pt")
    with pytest.raises(ValueError, match="before it is filled"):
        torch.load(tmp_path / "a.pt", weights_only=False)


def test_a_written_argument_needs_no_letter():
    name = "protocols::twice_into"
    torch.library.define(name, "(Tensor a, Tensor! out, Tensor(a0!) more) -> ()")

    @torch.library.impl(name, "default")
    def twice(a, out, more):
        out.copy_(a * 2)
        more.add_(a)

    a, out, more = torch.ones(2), torch.zeros(2), torch.zeros(2)
    before = out._version
    torch.ops.protocols.twice_into(a, out, more)
    assert out.tolist() == [2, 2] and more.tolist() == [1, 1] and out._version > before
