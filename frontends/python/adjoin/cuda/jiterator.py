"""adjoin.cuda.jiterator: functions of elements from C++ text are not compiled while a program runs; who calls is told what to use."""

from ._absent import absent

_WHY = (
    "no kernel is compiled from text; adjoin.library.custom_op makes an op of a function, an extension one with kernels"
)

_create_jit_fn, _create_multi_output_jit_fn = (
    absent(name, _WHY, "cuda.jiterator") for name in ("_create_jit_fn", "_create_multi_output_jit_fn")
)
