"""tests/frontends/cpp_headers_test.py: each header of the C++ frontend alone makes a program that computes; what cannot be a
module is refused by the compiler."""

import subprocess

import pytest
from building import config, run

HEADERS = {
    "adjoin": "std::printf(\"%g\", sum(ones({2, 3})).item<double>());",
    "nn": "manual_seed(1); nn::Linear net(4, 6); std::printf(\"%g\", double(net(ones({1, 4})).numel()));",
    "optim": "Tensor p = ones({6}); p.requires_grad_(true); optim::SGD sgd({p}); std::printf(\"%g\", double(p.numel()));",
    "data": "data::Loader loader(data::TensorDataset(ones({6, 2})), {.batch = 1}); std::printf(\"%g\", double(loader.size()));",
    "values": "std::printf(\"%g\", sum(tensor({{1.0, 2.0}, {3.0, 0.0}})).item<double>());",
    "plugins": "std::printf(\"%g\", plugins().empty() ? 0.0 : 6.0);",
    "safetensors": "save_safetensors({{\"x\", ones({6})}}, \"x.safetensors\"); "
                   "std::printf(\"%g\", double(load_safetensors(\"x.safetensors\")[\"x\"].numel()));",
    "pt": "save_pt({{\"x\", ones({6})}}, \"x.pt\"); std::printf(\"%g\", double(load_pt(\"x.pt\")[\"x\"].numel()));",
    "state": "save({{\"x\", ones({6})}}, \"y.pt\"); std::printf(\"%g\", double(load(\"y.pt\")[\"x\"].numel()));",
    "program": "Program p = Program::parse(\"adjoin.program 1\\nfn f(%x: float32[6]) {\\n  return %x\\n}\"); "
               "std::printf(\"%lld\", (long long)p.value(AJ_PROGRAM_INPUT, 0).type.shape[0]);",
    "nn/linear": "nn::Linear net(4, 6); std::printf(\"%g\", double(net(ones({1, 4})).numel()));",
}  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_alone(header, tmp_path):
    name = header.replace("/", "_")
    program = f"#include <adjoin/{header}.hpp>\n#include <cstdio>\nusing namespace adjoin;\nint main() {{\n"
    program += f"  try {{\n    {HEADERS[header]}\n  }} catch (const Error& e) {{\n    std::puts(e.what());\n  }}\n}}\n"
    (tmp_path / f"{name}.cpp").write_text(program)
    line = ["g++", "-std=c++20", "-O0", "-Wall", "-Werror", f"{name}.cpp", "-o", name]
    done = subprocess.run(
        [*line, *config("--cflags").split(), *config("--libs").split()], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert run(tmp_path / name, cwd=tmp_path).endswith("6" if header != "plugins" else ("6", "0"))


DERIVED = {
    "final": ("struct Net : nn::Sequential { nn::Linear head{2, 2}; };\nNet net;\n", "cannot derive from"),
    "member": (
        "struct Base : nn::Module<Base> { nn::Linear a{2, 2}; };\nstruct More : Base { nn::Linear b{2, 2}; };\n"
        "struct Net : nn::Module<Net> { More more; };\nsize_t count(Net& n) { return n.parameters().size(); }\n",
        "a struct derived from another module would lose its own members",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVED)
def test_a_module_that_would_lose_members_does_not_compile(name, tmp_path):
    program, told = DERIVED[name]
    (tmp_path / "net.cpp").write_text("#include <adjoin/nn.hpp>\nusing namespace adjoin;\n" + program)
    line = ["g++", "-std=c++20", "-fsyntax-only", *config("--cflags").split(), str(tmp_path / "net.cpp")]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode and told in done.stderr


def test_norms_of_one_width(tmp_path):
    (tmp_path / "norm.cpp").write_text(
        "#include <adjoin/nn.hpp>\nusing namespace adjoin;\n"
        "size_t count(int64_t w) { return nn::LayerNorm({w}).shape.size() + nn::RMSNorm(w).shape.size(); }\n"
        "size_t two() { return nn::LayerNorm({3, 5}, {.bias = false}).shape.size(); }\n"
    )
    line = ["g++", "-std=c++20", "-fsyntax-only", *config("--cflags").split(), str(tmp_path / "norm.cpp")]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
