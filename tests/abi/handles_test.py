"""tests/abi/handles_test.py: a device whose pointers are handles: nobody computes with one, views carry an offset."""

import textwrap

import pytest

from abi_tools import HERE, adjoin, compile_plugin, run_python


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("handles")
    compile_plugin(out, (HERE / "handles.c").read_text(), name="handles", flags=["-std=c11", "-Werror"])
    return out


START = """
import adjoin
def look(t):
    return dict(zip(("data", "offset", "flags", "handle", "bytes", "storage_offset"), adjoin.ops.handles.look(t).tolist()))
def both(*shape):
    host = adjoin.arange(float(adjoin.Size(shape).numel())).reshape(shape)
    return host, host.to("handles")
def same(host, other):
    assert other.device.type == "handles", other.device
    assert host.shape == other.shape and host.tolist() == other.tolist(), (host, other.cpu())
"""
PROGRAMS = {
    "views have the handle and an offset": """
        _, x = both(4, 6)
        whole = look(x)
        assert whole["data"] % 2 == 1 and whole["data"] == whole["handle"] and whole["bytes"] >= 96, whole
        assert whole["offset"] == whole["storage_offset"] == 0
        for view, offset in [(x[1], 24), (x[2:, 3:], 60), (x[::2, 1::2], 4), (x.T[5], 20), (x[3, 5], 92), (x.reshape(24)[7:], 28),
                             (x[1:][1:][1:], 72), (x.unfold(1, 2, 2)[0, 2], 16), (x.expand(3, 4, 6)[2, 1], 24)]:
            got = look(view)
            assert (got["data"], got["offset"], got["handle"]) == (whole["data"], offset, whole["handle"]), (offset, got)
            assert got["storage_offset"] == offset and got["flags"] & 1 and view.storage_offset() * 4 == offset
        """,
    "an empty tensor has a handle": """
        for x in (adjoin.empty(0, device="handles"), adjoin.empty(3, 0, 2, device="handles"), adjoin.arange(0).to("handles")):
            got = look(x)
            assert got["data"] % 2 == 1 and got["data"] == got["handle"] and got["offset"] == 0, got
            assert x.tolist() == adjoin.empty(x.shape).tolist() and (-x.float()).shape == x.shape
        _, x = both(4, 6)
        assert look(x[2:2])["data"] == look(x)["data"]
        """,
    "values of views": """
        h, x = both(4, 6)
        for cut in (lambda t: t[1], lambda t: t[2:, 3:], lambda t: t[::2, 1::2], lambda t: t.T, lambda t: t.T[1:, ::3],
                    lambda t: t[3, 5], lambda t: t.expand(2, 4, 6)[1], lambda t: t[1:].reshape(-1), lambda t: t[:, 1:].reshape(20),
                    lambda t: t[:, 2:4].contiguous(), lambda t: t[1:].clone(), lambda t: t.flip(0), lambda t: t[[3, 0]],
                    lambda t: t[t > 7], lambda t: t.diagonal(), lambda t: adjoin.cat([t[1:], t[:1]]), lambda t: t[1:].sum(1)):
            same(cut(h), cut(x))
        """,
    "copies carry offsets": """
        h, x = both(4, 6)
        for t in (h, x):
            t[1:3].copy_(adjoin.full((2, 6), 7.0))
            t[:, 1].copy_(adjoin.arange(4.0))
            t[0, ::2].copy_(t[3, 1::2])
            t[2:, 4:] = t[:2, :2].clone()
            t[3].fill_(5)
            t[1, 2:5].zero_()
        same(h, x)
        assert x[1:3, 2:4].cpu().tolist() == h[1:3, 2:4].tolist()
        y = adjoin.empty(4, 6, device="handles")
        y[1:].copy_(x[:3])
        same(h[:3], y[1:])
        """,
    "written in place by a kernel of its own": """
        h, x = both(4, 6)
        before = look(x)["data"]
        for t in (h, x):
            t[1:3, 1::2].neg_()
            t.T[4].neg_()
            adjoin.neg(t[0], out=t[3])
        same(h, x)
        assert look(x)["data"] == before
        same(-h[1:, 2:], -x[1:, 2:])
        """,
    "written in place by the host": """
        h, x = both(4, 6)
        for t in (h, x):
            t[1:3, 1::2].mul_(10)
            t.T[2].add_(t[0, 1])
            t[2].sub_(t[1]).clamp_(min=-50)
            adjoin.exp(t[0, :3], out=t[3, 3:])
            t[1:].index_fill_(1, adjoin.tensor([0], device=t.device), -1)
        same(h, x)
        """,
    "a step of training": """
        h, x = both(3, 4)
        grads = []
        for t in (h, x):
            w = (t[1:] / 10).detach().requires_grad_()
            (w @ t[0] - 1).square().sum().backward()
            grads.append(w.grad)
        assert grads[1].device.type == "handles"
        assert adjoin.allclose(grads[0], grads[1].cpu())
        """,
    "from the host and back, of any size": """
        for n in (0, 1, 3, 127, 128, 1000, 70000):
            h = adjoin.arange(n)
            x = h.to("handles")
            assert x.tolist() == h.tolist() and x[n // 2:].cpu().tolist() == h[n // 2:].tolist()
        kept = [adjoin.full((k,), float(k), device="handles") for k in range(1, 200)]
        assert len({look(t)["data"] for t in kept}) == len(kept), "memory of handles is not cut"
        assert all(t.tolist() == [float(k)] * k for k, t in enumerate(kept, 1))
        """,
    "read as another dtype": """
        h, x = both(4, 6)
        for dtype in (adjoin.int32, adjoin.uint8, adjoin.int16):
            same(h[1:, 2:].view(dtype), x[1:, 2:].view(dtype))
        same(h.view(adjoin.uint8)[1:].view(adjoin.float32), x.view(adjoin.uint8)[1:].view(adjoin.float32))
        try:
            x.view(adjoin.uint8).reshape(-1)[1:9].view(adjoin.float32)
        except (RuntimeError, ValueError) as error:
            assert "view" in str(error), error
        else:
            raise AssertionError("an offset that is no whole number of elements")
        """,
    "a deep copy": """
        import copy
        _, x = both(2, 3)
        assert copy.deepcopy(x[1]).tolist() == [3, 4, 5]
        """,
    "what is handed out": """
        import pickle
        _, x = both(2, 3)
        assert pickle.loads(pickle.dumps(x[1:])).tolist() == [[3, 4, 5]]
        for wrong in (lambda: x.numpy(), lambda: adjoin.from_dlpack(x).cpu().add(1).tolist() == [[1, 2, 3], [4, 5, 6]] or 1 / 0):
            try:
                wrong()
            except (TypeError, BufferError, RuntimeError, ValueError) as error:
                assert "handles" in str(error) or "cpu" in str(error), error
        str(x), repr(x[1:]), x.data_ptr(), x[1:].untyped_storage() if hasattr(x, "untyped_storage") else None
        """,
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_from_python(case, folder):
    got = run_python(START + textwrap.dedent(PROGRAMS[case]), ADJOIN_PLUGIN_PATH=folder, ADJOIN_FALLBACK="host")
    assert got.returncode == 0, got.stdout + got.stderr


CAPSULES = """
import ctypes
class Shown(ctypes.Structure):  # DLManagedTensorVersioned
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("dtype", ctypes.c_uint32), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("offset", ctypes.c_uint64)]
class Borrowed(ctypes.Structure):
    _fields_ = Shown._fields_[5:]
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
def shown(t):
    capsule = t.__dlpack__(max_version=(1, 3))
    s = Shown.from_address(pointer(capsule, b"dltensor_versioned"))
    return s.data, s.type, s.offset
def borrowed(t):
    table = pointer(adjoin.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    f = ctypes.c_void_p.from_address(table + 40).value
    out = Borrowed()
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Borrowed))(f)(t, ctypes.byref(out))
    return out.data, out.type, out.offset
_, x = both(4, 6)
"""


def test_a_handle_is_no_address(folder):
    """DLPack has types of devices whose data is a handle; behind any other a consumer would read the handle as an address."""
    got = run_python(
        START
        + CAPSULES
        + textwrap.dedent("""
        for f in (lambda: x.__dlpack__(), lambda: shown(x[1:]), lambda: borrowed(x)):
            try:
                f()
            except BufferError as error:
                assert str(error).startswith("to_dlpack: tensors of handles:0 have handles where others read an address"), error
            else:
                raise AssertionError("handed out")
        assert adjoin.from_dlpack(x)[1:].cpu().tolist()[0] == [6, 7, 8, 9, 10, 11]  # our own, by no capsule
        """),
        ADJOIN_PLUGIN_PATH=folder,
    )
    assert got.returncode == 0, got.stdout + got.stderr


@pytest.mark.parametrize("name", ["kDLOpenCL", "kDLVulkan", "kDLMetal", "kDLWebGPU"])
def test_a_type_of_handles_is_handed_out(name, tmp_path):
    compile_plugin(
        tmp_path,
        (HERE / "handles.c").read_text(),
        name="handles",
        flags=["-std=c11", "-Werror", f"-DDLPACK_TYPE={name}"],
    )
    number = {"kDLOpenCL": 4, "kDLVulkan": 7, "kDLMetal": 8, "kDLWebGPU": 15}[name]
    got = run_python(
        START
        + CAPSULES
        + textwrap.dedent(f"""
        assert x.data_ptr() % 2 == 1
        for f in (shown, borrowed):
            assert f(x) == (x.data_ptr(), {number}, 0) and f(x[2:, 3:]) == (x.data_ptr(), {number}, 60), (f(x), f(x[2:, 3:]))
        """),
        ADJOIN_PLUGIN_PATH=tmp_path,
    )
    assert got.returncode == 0, got.stdout + got.stderr


def test_it_conforms(folder):
    got = adjoin("conform", folder / "libaj_handles.so", "--op", "neg", "--op", "copy_", "--op", "fill_", "--op", "add")
    assert got.returncode == 0, got.stdout + got.stderr
