"""tests/python/toplevel/audio_test.py: torchaudio's ops by loops and by finite differences; who stands in for its extension."""

import itertools
import subprocess
import sys

import adjoin
import pytest

ta = adjoin.ops.torchaudio


def wave(*shape):
    return (adjoin.arange(float(adjoin.Size(shape).numel()), dtype=adjoin.float64) * 0.37).sin().reshape(shape)


@pytest.mark.parametrize("n", [0, 1, 5, 127, 128, 129, 400])
@pytest.mark.parametrize("order", [0, 1, 2, 7, 150])
def test_recursive_filters(n, order):
    x, a = wave(2, 3, n), adjoin.cat([wave(3, order) * 0.4 / max(order, 1), adjoin.ones(3, 1, dtype=adjoin.float64)], 1)
    made = adjoin.zeros(2, 3, order + n, dtype=adjoin.float64)
    made[:, :, :order] = 0.5  # what came before is heard, too
    wanted = made.clone()
    assert ta._lfilter_core_loop(x, a, made) is None
    for i in range(n):
        wanted[:, :, order + i] = x[:, :, i] - (wanted[:, :, i : i + order] * a[:, :-1]).sum(-1)
    adjoin.testing.assert_close(made, wanted)


def test_filters_that_do_not_fit():
    with pytest.raises(RuntimeError, match="do not fit"):
        ta._lfilter_core_loop(wave(1, 2, 5), wave(2, 3), wave(1, 2, 5))


def test_overdrive():
    x, t, made = wave(2, 300), wave(2, 300).cos(), adjoin.zeros(2, 300, dtype=adjoin.float64)
    last_in, last_out, wanted = adjoin.full((2,), 0.3).double(), adjoin.full((2,), -0.2).double(), []
    ta._overdrive_core_loop(x, t, last_in, last_out, made)
    for i in range(300):
        last_out, last_in = t[:, i] - last_in + 0.995 * last_out, t[:, i]
        wanted.append(x[:, i] * 0.5 + last_out * 0.75)
    adjoin.testing.assert_close(made, adjoin.stack(wanted, 1))


def _joined(path, blank):
    return [k for k, _ in itertools.groupby(path) if k != blank]


@pytest.mark.parametrize("labels", [[1, 2], [1, 1], [2], [1, 2, 1]])
def test_the_best_path_is_the_best_of_all(labels):
    log_probs, n = (wave(1, 5, 3) * 2).log_softmax(-1), adjoin.tensor
    path, scores = ta.forced_align(log_probs, n([labels]), n([5]), n([len(labels)]), 0)

    def score(path):
        return sum(log_probs[0, t, k].item() for t, k in enumerate(path))

    best = max((p for p in itertools.product(range(3), repeat=5) if _joined(p, 0) == labels), key=score)
    assert path[0].tolist() == list(best) and adjoin.equal(scores, log_probs)
    with pytest.raises(RuntimeError, match="too long for CTC"):
        ta.forced_align(log_probs, n([[1, 1, 1, 1]]), n([5]), n([4]), 0)
    with pytest.raises(RuntimeError, match="one sequence"):
        ta.forced_align(log_probs.expand(2, 5, 3), n([[1], [1]]), n([5, 5]), n([1, 1]), 0)


def _transducer(p, labels, frames):
    """The probability of all ways through the lattice, one by one."""
    ways = []
    for places in itertools.combinations_with_replacement(range(frames), len(labels)):
        logs, u = [], 0
        for t in range(frames):
            while u < len(labels) and places[u] == t:
                logs.append(p[t, u, labels[u]])
                u += 1
            logs.append(p[t, u, 0])
        ways.append(sum(logs))
    return -adjoin.stack(ways).logsumexp(0)


@pytest.mark.parametrize("fused", [True, False])
def test_the_loss_of_transducers(fused):
    logits, labels = wave(2, 4, 3, 3), adjoin.tensor([[1, 2], [2, 0]], dtype=adjoin.int32)
    frames, counts = adjoin.tensor([4, 3], dtype=adjoin.int32), adjoin.tensor([2, 1], dtype=adjoin.int32)
    x = logits.clone().requires_grad_()
    p = x.log_softmax(-1) if fused else x
    wanted = adjoin.stack([_transducer(p[0], [1, 2], 4), _transducer(p[1], [2], 3)])
    (slope,) = adjoin.autograd.grad(wanted.sum(), x)
    cost, grad = ta.rnnt_loss_forward(logits, labels, frames, counts, 0, -1.0, fused)
    adjoin.testing.assert_close(cost, wanted.detach())
    adjoin.testing.assert_close(grad, slope)
    cut = ta.rnnt_loss_forward(logits, labels, frames, counts, 0, 0.1, fused)[1]
    adjoin.testing.assert_close(cut, slope.clamp(-0.1, 0.1))
    with pytest.raises(RuntimeError, match="do not fit"):
        ta.rnnt_loss_forward(logits, labels[:1], frames, counts, 0, -1.0, fused)


def test_who_stands_in_for_its_extension(tmp_path):
    folder = tmp_path / "torchaudio" / "lib"
    folder.mkdir(parents=True)
    for name in ("_torchaudio.abi3.so", "libtorchaudio.abi3.so", "other.so"):
        (folder / name).write_bytes(b"\x7fELF")
    program = f"""
import adjoin as torch
for name in ("_torchaudio", "libtorchaudio"):
    torch.ops.load_library({str(folder)!r} + f"/{{name}}.abi3.so")
assert torch.ops._torchaudio.is_align_available() and torch.ops._torchaudio.cuda_version() is None
assert callable(torch.ops.torchaudio._lfilter_core_loop)
try:
    torch.ops.load_library({str(folder / "other.so")!r})
except OSError as error:
    print("is no plugin of Adjoin" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.stdout == "True\n", done.stderr
