"""tests/python/toplevel/module_paths_test.py: PyTorch's paths to modules, a program's own name for the package, and what is there
only so that programs run."""

import subprocess
import sys

import adjoin as torch
import pytest
from adjoin import nn

PROGRAM = """
import sys
import adjoin
sys.modules["torch"] = adjoin
import torch.nn.functional as F
import torch.nn as nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader
from torch.distributions.categorical import Categorical
assert nn is adjoin.nn and F is adjoin.nn.functional and sys.modules["torch.nn"] is adjoin.nn
assert nn.__spec__.name == "adjoin.nn" and Categorical is adjoin.distributions.Categorical
from adjoin.nn.modules.conv import Conv2d
from torch.nn.modules.conv import Conv2d as same
assert same is Conv2d is nn.Conv2d
StepLR(AdamW(nn.Linear(2, 2).parameters()), 1)
import torch  # what PyTorch has as files is there without an import of its own
assert torch.optim.adamw.AdamW is AdamW and torch.distributions.half_normal.HalfNormal is torch.distributions.HalfNormal
assert nn.modules.pixelshuffle.PixelShuffle is nn.PixelShuffle and nn.parallel.scatter_gather.scatter is nn.parallel.scatter
assert torch.distributed.distributed_c10d is torch.distributed.constants is torch.distributed
assert torch.distributed.GradBucket is nn.parallel.distributed.GradBucket
assert torch.cuda.amp.grad_scaler.GradScaler is torch.cuda.amp.GradScaler
assert not hasattr(torch.optim, "no_such_room") and not hasattr(torch.distributed, "no_such_room")
try:
    import torch.no_such_room
except ModuleNotFoundError as error:
    assert error.name == "torch.no_such_room", error
else:
    raise AssertionError
"""


def test_under_another_name():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


def test_paths():
    import numpy as np
    from adjoin.autograd.variable import Variable
    from adjoin.cuda.amp.autocast_mode import autocast
    from adjoin.cuda.amp.common import amp_definitely_not_available
    from adjoin.cuda.amp.grad_scaler import GradScaler
    from adjoin.distributed.fsdp.api import ShardingStrategy
    from adjoin.distributions.mixture_same_family import MixtureSameFamily
    from adjoin.distributions.normal import Normal
    from adjoin.distributions.transformed_distribution import TransformedDistribution
    from adjoin.nn.modules.upsampling import Upsample
    from adjoin.nn.parallel.distributed import DistributedDataParallel
    from adjoin.optim.adamw import AdamW
    from adjoin.utils.data._utils.collate import np_str_obj_array_pattern
    from adjoin.utils.model_zoo import load_state_dict_from_url

    assert torch.utils.model_zoo.load_url is torch.hub.load_state_dict_from_url is load_state_dict_from_url
    assert torch.utils.model_zoo.tqdm is torch.hub.tqdm
    assert torch.autograd.variable.Variable is Variable
    assert Normal is torch.distributions.Normal and AdamW is torch.optim.AdamW and Upsample is nn.Upsample
    assert MixtureSameFamily is torch.distributions.MixtureSameFamily and callable(load_state_dict_from_url)
    assert TransformedDistribution is torch.distributions.TransformedDistribution
    assert autocast is torch.cuda.amp.autocast and GradScaler is torch.cuda.amp.GradScaler
    assert amp_definitely_not_available() is not torch.cuda.is_available()
    assert ShardingStrategy is torch.distributed.fsdp.ShardingStrategy
    texts, numbers = (np.array(x).dtype.str for x in (["a"], [1.0]))
    assert np_str_obj_array_pattern.search(texts) and not np_str_obj_array_pattern.search(numbers)
    ran = []
    torch.cuda._lazy_call(lambda: ran.append(1))
    assert bool(ran) is torch.cuda.is_available()
    assert Variable is torch.autograd.Variable and DistributedDataParallel is nn.parallel.DistributedDataParallel


def test_every_path_leads_somewhere(monkeypatch):
    import importlib

    from adjoin import _C, _names

    monkeypatch.setattr(_C, "__path__", [], raising=False)  # as under `adjoin run`
    for theirs, ours in _names.PLACES.items():
        found, real = importlib.import_module("adjoin." + theirs), importlib.import_module("adjoin." + ours)
        assert getattr(found, "_real", found) is real  # one stands for a function of its name, too


def test_variable():
    from adjoin.autograd import Variable

    x = Variable(torch.ones(2), requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3] and isinstance(torch.ones(1), Variable) and not isinstance(1, Variable)


def test_jit_runs_python():
    @torch.jit.script
    def double(x):
        return x * 2

    @torch.jit.ignore(drop=False)
    def other(x):
        return x

    assert double(torch.ones(1)).item() == 2 and other(3) == 3
    assert torch.jit.ignore(double) is double and not torch.jit.is_scripting() and not torch.jit.is_tracing()
    net = nn.Sequential(nn.Linear(2, 1))
    for example in (torch.ones(1, 2), (torch.ones(1, 2),)):
        assert torch.jit.trace(net, example)(torch.ones(1, 2)).equal(net(torch.ones(1, 2)))
    assert torch.jit.isinstance(net, nn.Module) and torch.jit.annotate(int, 3) == 3
    with pytest.raises(RuntimeError, match="state_dict"):
        torch.jit.save(net, "net.pt")
    with pytest.raises(RuntimeError, match="eval"):
        torch.jit.freeze(net)
    assert torch.jit.freeze(net.eval()) is net


def test_attention_backends():
    from adjoin.nn.attention import SDPBackend, sdpa_kernel

    q = torch.randn(1, 2, 3, 4)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        out = nn.functional.scaled_dot_product_attention(q, q, q)
    assert out.equal(nn.functional.scaled_dot_product_attention(q, q, q))
    with pytest.raises(TypeError, match="SDPBackend"), sdpa_kernel("fast"):
        pass


def test_data_parallel():
    import adjoin.nn.parallel.data_parallel as path

    net = nn.Linear(2, 3)
    assert nn.parallel.data_parallel(net, torch.ones(1, 2)).equal(net(torch.ones(1, 2)))  # the path has its name
    assert path.DataParallel is nn.DataParallel
    wrapped = nn.DataParallel(net)
    assert wrapped(torch.ones(1, 2)).equal(net(torch.ones(1, 2))) and wrapped.module is net
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    assert nn.DataParallel(net, device_ids=["cpu"])(torch.ones(1, 2)).equal(net(torch.ones(1, 2)))
    assert not torch.distributed.is_initialized()
    with pytest.raises(ValueError, match="init_process_group"):
        nn.parallel.DistributedDataParallel(net)


def test_profiler():
    from adjoin.profiler import ProfilerActivity, profile, record_function, schedule

    x, told = torch.ones(4), []
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    assert [plan(i).name for i in range(5)] == ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE"]
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=told.append) as prof:
        for _ in range(6):
            with record_function("step"):
                x.exp()
            prof.step()
    rows = {row.key: row for row in prof.key_averages()}
    assert told == [prof] and rows["exp"].count == 2 and rows["step"].count == 2 and rows["exp"].cpu_time_total > 0
    assert "exp" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=3)
    with profile() as prof:
        x.cos()
    assert [row.key for row in prof.key_averages()] == ["cos"]
    with torch.autograd.profiler.profile(enabled=False) as prof:
        x.cos()
    assert not prof.key_averages()


def test_benchmark_timer():
    from adjoin.utils import benchmark

    threads = torch.get_num_threads()
    timer = benchmark.Timer(stmt="x + y", setup="y = 1", globals={"x": torch.ones(3)}, label="add")
    once = timer.timeit(20)
    assert once.number_per_run == 20 and 0 < once.median == once.mean and "add" in repr(once)
    many = timer.blocked_autorange(min_run_time=0.01)
    assert len(many.times) > 1 and many.iqr >= 0 and torch.get_num_threads() == threads


def test_dlpack_both_ways():
    from adjoin.utils.dlpack import from_dlpack, to_dlpack

    x = torch.arange(3)
    assert from_dlpack(to_dlpack(x)).data_ptr() == x.data_ptr()


def test_type_by_an_old_class():
    assert torch.arange(2).type(torch.FloatTensor).dtype is torch.float32


def test_parameter_containers_print():
    one, two = nn.ParameterDict({"a": nn.Parameter(torch.ones(3))}), nn.ParameterList([nn.Parameter(torch.ones(2))] * 2)
    assert repr(one) == "ParameterDict(  (a): Parameter containing: [adjoin.FloatTensor of size 3])"
    line = "Parameter containing: [adjoin.float32 of size 2]"
    assert repr(two) == f"ParameterList(\n    (0): {line}\n    (1): {line}\n)"


def test_saved_tensors_are_values():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.requires_grad) or t, lambda t: t):
        z = (x.exp() ** 3 * x).sum()
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    e = (3 * x.detach()).exp()
    assert seen.count(True) == 1 and torch.allclose(gg, e * (6 + 9 * x.detach()))


def test_transforms_take_a_cache_size():
    t = torch.distributions.transforms
    for made in (
        t.TanhTransform(cache_size=1),
        t.AffineTransform(0, 2, cache_size=1),
        t.PowerTransform(2.0, cache_size=1),
    ):
        assert torch.allclose(made.inv(made(torch.tensor(0.5))), torch.tensor(0.5))


def test_mixture():
    d = torch.distributions
    mixed = d.MixtureSameFamily(d.Categorical(torch.tensor([0.25, 0.75])), d.Normal(torch.tensor([0.0, 2.0]), 1.0))
    x = torch.tensor([0.5, 1.5, 3.0])
    parts = [w * d.Normal(m, 1.0).log_prob(x).exp() for w, m in ((0.25, 0.0), (0.75, 2.0))]
    assert torch.allclose(mixed.log_prob(x).exp(), parts[0] + parts[1])
    assert mixed.mean.item() == pytest.approx(1.5) and mixed.variance.item() == pytest.approx(1.75)
    torch.manual_seed(0)
    drawn = mixed.sample((20000,))
    assert drawn.shape == (20000,) and abs(drawn.mean().item() - 1.5) < 0.05 and abs(drawn.var().item() - 1.75) < 0.1
    assert abs(mixed.cdf(torch.tensor(1.0)).item() - (drawn < 1.0).float().mean().item()) < 0.02
    many = d.MixtureSameFamily(
        d.Categorical(torch.ones(5, 3)), d.Independent(d.Normal(torch.randn(5, 3, 2), torch.ones(5, 3, 2)), 1)
    )
    assert many.batch_shape == (5,) and many.event_shape == (2,) and many.sample((4,)).shape == (4, 5, 2)
    assert many.log_prob(torch.zeros(5, 2)).shape == (5,) and many.mean.shape == (5, 2)
    assert many.expand((6, 5)).sample().shape == (6, 5, 2)
    with pytest.raises(ValueError, match="weights"):
        d.MixtureSameFamily(d.Categorical(torch.ones(3)), d.Normal(torch.zeros(2), 1.0))


def test_tree():
    from adjoin.utils._pytree import tree_flatten, tree_map, tree_map_only, tree_unflatten

    tree = {"a": [1, (2, None)], "b": ()}
    leaves, spec = tree_flatten(tree)
    assert leaves == [1, 2, None] and tree_unflatten(leaves, spec) == tree and spec == tree_flatten(tree)[1]
    assert tree_map(lambda a, b: a + b, [1, (2,)], [10, (20,)]) == [11, (22,)]
    assert tree_map_only(int, lambda x: -x, tree) == {"a": [-1, (-2, None)], "b": ()}
    with pytest.raises(ValueError, match="leaves"):
        tree_unflatten([1], spec)


def test_prune():
    prune = nn.utils.prune
    layer = nn.Linear(4, 3)
    whole = layer.weight.detach().clone()
    prune.l1_unstructured(layer, name="weight", amount=0.5)
    kept = whole.abs() > whole.abs().reshape(-1).sort().values[5]
    assert layer.weight.equal(whole * kept) and prune.is_pruned(layer)
    assert list(dict(layer.named_parameters())) == ["bias", "weight_orig"] and "weight_mask" in layer.state_dict()
    layer(torch.ones(1, 4)).sum().backward()
    assert layer.weight_orig.grad.equal(kept.float())
    prune.random_unstructured(layer, "weight", 2)
    assert int((layer.weight_mask == 0).sum()) == 8
    prune.remove(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter) and int((layer.weight == 0).sum()) == 8 and not prune.is_pruned(layer)
    conv = nn.Conv2d(2, 4, 1)
    prune.ln_structured(conv, "weight", amount=1, n=2, dim=0)
    norms = conv.weight_orig.detach().norm(2, dim=(1, 2, 3))
    assert (conv.weight.abs().sum((1, 2, 3)) == 0).nonzero().item() == norms.argmin().item()
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=3)
    assert int((a.weight == 0).sum() + (b.weight == 0).sum()) == 3
    with pytest.raises(ValueError, match="pruned"):
        prune.remove(nn.Linear(1, 1), "weight")


def test_vmap():
    from adjoin.func import functional_call, grad, stack_module_state, vmap

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    assert torch.allclose(vmap(torch.dot)(x, y), (x * y).sum(1)) and torch.vmap is vmap
    assert vmap(lambda a, b: a * b, in_dims=(1, None), out_dims=1)(x, torch.ones(3)).equal(x)
    nested = vmap(vmap(lambda a, b: a + b, (None, 0)), (0, None))(torch.arange(3), torch.arange(4))
    assert nested.tolist() == [[i + j for j in range(4)] for i in range(3)]
    net = nn.Linear(4, 1)
    each = vmap(grad(lambda p, a: functional_call(net, p, (a,)).sum()), in_dims=(None, 0))(
        dict(net.named_parameters()), x
    )
    assert torch.allclose(each["weight"][:, 0], x) and each["bias"].shape == (3, 1)
    nets = [nn.Linear(4, 2) for _ in range(3)]
    params, buffers = stack_module_state(nets)
    out = vmap(lambda p, b, a: functional_call(nets[0], (p, b), (a,)), (0, 0, None))(params, buffers, x)
    assert torch.allclose(out, torch.stack([n(x) for n in nets]))
    with pytest.raises(ValueError, match="one size"):
        vmap(torch.dot)(torch.ones(2, 3), torch.ones(3, 3))


def test_switches_of_backends():
    with torch.backends.cudnn.flags(enabled=False, benchmark=True):
        assert not torch.backends.cudnn.enabled and torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.enabled and not torch.backends.cudnn.benchmark
    torch.backends.cuda.enable_flash_sdp(False)
    assert not torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(True)
    assert not torch.backends.openmp.is_available() and isinstance(torch.backends.mkl.is_available(), bool)
    assert "Adjoin" in torch.__config__.show() and "threads" in torch.__config__.parallel_info()


def test_windows():
    import numpy as np

    for n in (0, 1, 2, 7, 8):
        for ours, theirs in (
            ("hann", "hanning"),
            ("hamming", "hamming"),
            ("blackman", "blackman"),
            ("bartlett", "bartlett"),
        ):
            make, want = getattr(torch, ours + "_window"), getattr(np, theirs)
            assert np.allclose(make(n, periodic=False).numpy(), want(n), atol=1e-6)
            if n > 1:
                assert np.allclose(make(n, dtype=torch.float64).numpy(), want(n + 1)[:-1], atol=1e-12)
    assert torch.hann_window(3, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="negative"):
        torch.hann_window(-1)


def test_small_words():
    from adjoin._utils import _flatten_dense_tensors, _unflatten_dense_tensors
    from adjoin.types import Device, Number

    x = torch.ones(2, 3)
    assert torch.is_same_size(x, x) and not torch.is_conj(x) and not torch.is_inference(x) and torch.get_device(x) == -1
    assert isinstance(1.5, Number) and Device and not torch.is_distributed(x)
    parts = [torch.ones(2), torch.zeros(1, 2)]
    flat = _flatten_dense_tensors(parts)
    assert flat.tolist() == [1, 1, 0, 0]
    assert all(a.equal(b) for a, b in zip(_unflatten_dense_tensors(flat, parts), parts, strict=True))
    assert (
        not torch.compiler.is_compiling()
        and torch.compiler.disable(len) is len
        and torch.compiler.disable()(len) is len
    )
