"""tests/extensions/ffi_test.py: create_extension calls C functions over pointers with nothing but their header."""

import subprocess
import sys

import pytest

import adjoin as T
from adjoin.utils.ffi import create_extension, declarations

HEADER = """
#ifndef MINE_H
#define MINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <adjoin/abi/base.h>
/* y += a x;  int not_this(int); */
int axpy(const float *x, float *y, int64_t n, float a); // in the old manner: 1 is good
double dot(const double x[], const double* restrict y, size_t n);
void fill(aj_tensor* t, uint8_t value);
bool starts(const char *text, const char* with);
int64_t rank(const DLTensor* t);
void nothing(void);
unsigned char low(unsigned short x, unsigned long long y);
typedef struct pair { int a; } pair;
static inline int hidden(int x) { return x; }
#endif
"""
SOURCE = """
#include "mine.h"
#include <string.h>
int axpy(const float* x, float* y, int64_t n, float a) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
  return 1;
}
double dot(const double* x, const double* y, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}
void fill(aj_tensor* t, uint8_t value) { memset(t->dl.data, value, 4); }
bool starts(const char* text, const char* with) { return strncmp(text, with, strlen(with)) == 0; }
int64_t rank(const DLTensor* t) { return t->ndim; }
void nothing(void) {}
unsigned char low(unsigned short x, unsigned long long y) { return (unsigned char)(x + y); }
"""


@pytest.fixture
def mine(tmp_path, extensions):
    (tmp_path / "mine.h").write_text(HEADER)
    (tmp_path / "mine.c").write_text(SOURCE)
    return create_extension("_ext.mine", headers="mine.h", sources=["mine.c"], relative_to=str(tmp_path)).build()


def test_functions_are_ops(mine):
    assert mine.__all__ == ["axpy", "dot", "fill", "low", "nothing", "rank", "starts"]
    x, y = T.ones(4), T.arange(4.0)
    before = y._version
    assert mine.axpy(x, y, 4, 0.5) == 1 and y.tolist() == [0.5, 1.5, 2.5, 3.5] and y._version > before
    assert (
        T._C.op_info("mine::axpy")[0]["schema"]
        == "mine::axpy(Tensor<float32> x, Tensor<float32>(b!) y, int n, float a) -> int"
    )
    z = T.arange(3, dtype=T.float64)
    assert mine.dot(x=z, y=z, n=3) == 5.0
    assert mine.starts("adjoin", "ad") is True and mine.starts("adjoin", "x") is False
    assert mine.rank(T.zeros(2, 3).t()) == 2 and mine.nothing() is None
    assert mine.low(250, 8) == 2
    t = T.zeros(4, dtype=T.uint8)
    mine.fill(t, 7)
    assert t.tolist() == [7] * 4


def test_what_does_not_fit_is_refused(mine):
    y = T.zeros(4)
    with pytest.raises((TypeError, RuntimeError), match="float32"):
        mine.axpy(T.ones(4, dtype=T.float64), y, 4, 1.0)
    with pytest.raises(RuntimeError, match="y: a tensor in C order is wanted; call .contiguous"):
        mine.axpy(T.ones(4), T.zeros(4, 2)[:, 0], 4, 1.0)
    with pytest.raises(RuntimeError, match="y: it requires grad and C functions are not recorded"):
        mine.axpy(T.ones(4), T.zeros(4, requires_grad=True), 4, 1.0)
    with pytest.raises(RuntimeError, match="t: it requires grad"):
        mine.rank(T.zeros(4, requires_grad=True))
    with T.no_grad():
        assert mine.rank(T.zeros(4, requires_grad=True)) == 1
    with pytest.raises(RuntimeError, match="x: a tensor on the device cpu"):
        mine.dot(T.zeros(3, dtype=T.float64, device="meta"), T.zeros(3, dtype=T.float64, device="meta"), 3)
    with pytest.raises(RuntimeError, match="longer than 4095"):
        mine.starts("a" * 5000, "a")
    with pytest.raises(TypeError):
        mine.dot(1.0, 2.0, 3)


def test_a_later_program_imports_the_package(mine, tmp_path):
    program = "import torch; from _ext import mine; y = torch.zeros(2); mine.axpy(torch.ones(2), y, 2, 3.0); print(y.tolist(), mine.__all__)"
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-m", "adjoin.torch", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"[3.0, 3.0] {mine.__all__}\n", done.stderr


def test_headers_that_cannot_be_served(tmp_path, extensions):
    with pytest.raises(ValueError, match="f: the parameter 'FILE \\* file' has no counterpart"):
        declarations("int f(FILE * file);")[0].schema("x")
    with pytest.raises(ValueError, match="there are no THFloatTensor any more; say const float"):
        declarations("int add(THFloatTensor *a, THFloatTensor *b);")[0].schema("x")
    with pytest.raises(ValueError, match="result 'pair'"):
        declarations("pair f(int x);")
    (tmp_path / "empty.h").write_text("typedef int number;\n")
    with pytest.raises(ValueError, match="no function is declared"):
        create_extension("empty", str(tmp_path / "empty.h"), [])
    with pytest.raises(TypeError, match="unknown nonsense"):
        create_extension("empty", str(tmp_path / "empty.h"), [], nonsense=1)
