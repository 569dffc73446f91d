"""tests/frontends/cpp_examples_test.py: the C and C++ examples build with one line and compute Python's numbers."""

import re
import shutil
import subprocess

import adjoin
import pytest
from adjoin import nn, optim, safetensors
from adjoin.nn import functional as F
from building import EXAMPLES, build, run

SYMBOLS, WINDOW, BATCH, STEPS = 256, 32, 16, 20


def losses(text):
    return [float(number) for number in re.findall(r"loss (\S+)", text)]


def test_the_digits_have_the_losses_and_the_accuracy_of_python(digits, tmp_path):
    from adjoin.demo import digits as demo

    assert len((EXAMPLES / "train_digits.cpp").read_text().splitlines()) <= 80
    program = build(EXAMPLES / "train_digits.cpp", tmp_path)
    told = run(program, digits, 2, 5, cwd=tmp_path)
    data = safetensors.load_file(digits)
    model, _, means, _ = demo.train(data["pictures"], data["labels"], seed=5, epochs=2, device=adjoin.device("cpu"))
    assert losses(told) == pytest.approx(means, rel=1e-6)
    answers = demo.predict(model, data["held_pictures"], adjoin.device("cpu"))
    assert f"accuracy: {demo.accuracy(answers, data['held_labels'].tolist()):.4f}" in told
    saved = safetensors.load_file(tmp_path / "digits_net.safetensors")
    for name, tensor in model.state_dict().items():
        adjoin.testing.assert_close(saved[name], tensor, rtol=1e-4, atol=1e-5)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        seen, length = self.norm1(x), x.size(1)
        mask = adjoin.ones(length, length, dtype=adjoin.bool).triu(1)
        x = x + self.attention(seen, seen, seen, attn_mask=mask, need_weights=False)[0]
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class CharModel(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.symbols, self.places = nn.Embedding(SYMBOLS, width), nn.Embedding(WINDOW, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(2)])
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, SYMBOLS)

    def forward(self, text):
        x = self.symbols(text) + self.places(adjoin.arange(text.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


def train_characters(model, text):
    adjoin.manual_seed(1)
    optimizer, window, seen = optim.AdamW(model.parameters(), lr=3e-3), adjoin.arange(WINDOW), []
    for _ in range(STEPS):
        rows = adjoin.randint(0, len(text) - WINDOW, (BATCH,)).unsqueeze(1) + window
        loss = F.cross_entropy(model(text[rows]).reshape(-1, SYMBOLS), text[rows + 1].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen.append(loss.item())
    return seen


def test_the_transformer_has_the_losses_of_python(tmp_path):
    program = build(EXAMPLES / "char_model.cpp", tmp_path)
    source = EXAMPLES / "char_model.cpp"
    adjoin.manual_seed(0)
    model = CharModel()
    safetensors.save_file(model.state_dict(), str(tmp_path / "start.safetensors"))
    told = run(program, source, STEPS, tmp_path / "start.safetensors")
    text = adjoin.tensor(list(source.read_bytes()), dtype=adjoin.int64)
    assert losses(told)[:STEPS] == pytest.approx(train_characters(model, text), rel=1e-6)


def test_a_missing_file_is_told(tmp_path):
    (tmp_path / "none.cpp").write_text(
        "// g++ -std=c++20 none.cpp -o none $(adjoin config --cflags --libs)\n#include <adjoin/adjoin.hpp>\n"
        'int main() { try { adjoin::load_safetensors("no/such"); } catch (const adjoin::Error& e) '
        "{ return e.code() != AJ_NOT_FOUND; } }\n"
    )
    run(build(tmp_path / "none.cpp", tmp_path))


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    return build(EXAMPLES / "linear.c", tmp_path_factory.mktemp("c"), "cc", "-g")


def test_the_linear_model_in_c_learns_what_python_learns(linear):
    told = run(linear)
    x = adjoin.tensor([[i % 8 / 4 - 0.875, i // 8 / 4 - 0.875] for i in range(64)])
    y = (3 * x[:, 0] - 2 * x[:, 1] + 1).unsqueeze(1)
    w, b = adjoin.zeros(2, 1, requires_grad=True), adjoin.zeros(1, 1, requires_grad=True)
    seen = []
    for _ in range(21):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        optim.SGD([w, b], lr=0.5).step()
        w.grad = b.grad = None
        seen.append(loss.item())
    assert losses(told)[:3] == pytest.approx(seen[::10], rel=1e-5)
    assert "w 3.00000 -2.00000 b 1.00000" in told and "plugin cpu" in told


def test_the_linear_model_in_c_tells_errors(linear, tmp_path):
    done = subprocess.run([linear, tmp_path / "none.so"], capture_output=True, text=True)
    assert done.returncode == 1 and "none.so" in done.stderr


@pytest.mark.skipif(not shutil.which("valgrind"), reason="there is no valgrind here")
def test_the_linear_model_in_c_leaks_nothing(linear):
    run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", linear)
