#!/usr/bin/env bash
# bench/all.sh: what `./run bench` runs, from the staged install: budget, import, side by side. Options go to side_by_side.py.
set -uo pipefail
out=build/bench
mkdir -p $out
failed=0

c++ -std=c++20 -O2 bench/call_bench.cpp -o $out/call_bench -I"$ADJOIN_PREFIX/include" -L"$ADJOIN_PREFIX/lib" -ladjoin \
  -Wl,-rpath,"$ADJOIN_PREFIX/lib" -lbenchmark -lpthread || exit 1
echo "== one call"
python bench/budget.py $out/call_bench | tee $out/budget.txt || failed=1
echo "== one call, step by step"
./run build traced && python bench/trace.py $out/call_bench build/traced/stage/usr/local/lib/libadjoin.so | tee $out/trace.txt || failed=1
echo "== pointwise kernels beside their limits"
for threads in 1 2; do
  python bench/limit_share.py --threads $threads | tee $out/limit_share$threads.txt || failed=1
done
echo "== import"
python bench/import_size.py | tee $out/import_size.txt || failed=1
if "${BENCH_PYTHON:-python}" -c 'import torch' 2>/dev/null; then
  echo "== beside PyTorch"
  python bench/side_by_side.py "$@" | tee $out/side_by_side.txt || failed=1
  echo "== memory of training"
  python bench/memory.py | tee $out/memory.txt || failed=1
else
  echo "== beside PyTorch: left out; name a Python that has it in BENCH_PYTHON"
fi
exit $failed
