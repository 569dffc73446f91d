#!/usr/bin/env bash
# tests/quick.sh: what `./run test quick` runs: a minute's look at everything, before a commit. It finds what is broken at large;
# `./run test` finds the rest.
set -euo pipefail
failed=0
bash tests/lint/all.sh || failed=1
meson test -C build/release --no-rebuild --suite adjoin --quiet --print-errorlogs || failed=1
python -m pytest -q -x tests/abi/layout_test.py tests/core/opgen_test.py tests/python/tensor/tensor_test.py \
  tests/python/tensor/indexing_test.py tests/python/autograd/autograd_test.py tests/python/nn/module_test.py \
  tests/python/nn/layers_test.py tests/python/optim/optim_test.py tests/python/data/data_test.py \
  tests/python/files/serialization_test.py tests/cli/cli_test.py || failed=1
# Of the rows of all ops one test of twenty, which ones the seed says.
ADJOIN_TEST_SHARE=20 python -m pytest -q tests/ops/rows_test.py tests/ops/rows_gradient_test.py || failed=1
exit $failed
