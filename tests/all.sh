#!/usr/bin/env bash
# tests/all.sh: what `./run test` runs, from the staged install; says what it leaves out.
set -euo pipefail
full=0
[ "${1:-}" = --full ] && { full=1; shift; }
export ADJOIN_TEST_FULL=$full
tree=build/release
logs=build/logs  # what each step printed
mkdir -p $logs
failed=()
# A step that does not end is a failure of its own, told with what it printed; three times what the longest takes. Interrupted, pytest
# says where it was.
limit() { if [ $full = 1 ]; then timeout --foreground -s INT -k 60 8h "$@"; else timeout --foreground -s INT -k 60 40m "$@"; fi; }
step() {
  local name=$1
  shift
  local from=$SECONDS
  if limit "$@" 2>&1 | tee "$logs/$name"; then echo "-- $name: passed in $((SECONDS - from)) s, $SECONDS s after the start"; else failed+=("$name"); echo "-- $name: FAILED"; fi
}
# Steps beside each other: start them, then finish tells how each went. Jobs of their own, so that Ctrl-C means there what it means
# to a program that somebody started.
declare -A jobs
names=()
start() {
  local name=$1
  shift
  set -m
  (from=$SECONDS; limit "$@"; code=$?; echo "-- took $((SECONDS - from)) s"; exit $code) >"$logs/$name" 2>&1 &
  set +m
  jobs[$name]=$!
  names+=("$name")
}
finish() {
  local name code
  for name in "${names[@]}"; do
    code=0
    wait "${jobs[$name]}" || code=$?
    unset "jobs[$name]"
    cat "$logs/$name"
    if [ $code = 0 ]; then echo "-- $name: passed, $SECONDS s after the start"; else failed+=("$name"); echo "-- $name: FAILED"; fi
  done
  names=()
}
# What still runs when this ends was interrupted.
end() {
  local job
  for job in "${jobs[@]}"; do kill -- "-$job" 2>/dev/null || true; done
}
trap end EXIT
# A long report may be read by its end alone: there the failures stand again.
recall() {
  local name lines
  for name in "${failed[@]}"; do
    echo "-- FAILED: $name (all of it: $logs/$name)"
    lines=$(grep -aE '^(FAILED|ERROR|E  |not covered: |[^ ]+:[0-9]+: )' "$logs/$name" || true)
    if [ -z "$lines" ]; then lines=$(tail -n 20 "$logs/$name"); fi
    tail -n 40 <<<"$lines" | cut -c1-300
  done
}

# What is compiled for the sanitizers is compiled beside the tests, which wait for children much of their time.
sanitizers=${ADJOIN_TEST_SANITIZERS:-1}
if [ "$sanitizers" = 1 ]; then
  setsid nice -n 19 bash -c './run build asan && ./run build tsan' >"$logs/sanitizer builds" 2>&1 &
  builds=$!
  jobs[builds]=$builds
fi

step lint bash tests/lint/all.sh
if [ $full = 1 ]; then step clang-tidy python3 tests/lint/tidy.py --all; fi
step "C++ tests" meson test -C $tree --no-rebuild --print-errorlogs --suite adjoin
start "contract, command, extensions" python -m pytest -q tests/abi tests/cli tests/extensions
step "Python tests" python -m pytest -q tests/lint tests/core tests/ops tests/plugins tests/python
finish
start "other languages" python -m pytest -q tests/frontends
start "packages" python -m pytest -q tests/packages
finish
for isa in base avx2; do  # the best of this processor was used above; of these a third, chosen by ADJOIN_TEST_SEED
  start "kernels for $isa" env ADJOIN_CPU_ISA=$isa ADJOIN_TEST_SHARE=$((3 - 2 * full)) python -m pytest -q tests/ops/rows_test.py tests/python/tensor/products_test.py
done
finish
if [ "$sanitizers" = 1 ]; then
  waited=$SECONDS
  if wait $builds; then
    echo "-- sanitizer builds: done after $((SECONDS - waited)) s more"
    unset "jobs[builds]"
    parts=(programs rows python conform)
    if [ $full = 1 ]; then parts+=(paper); fi
    for part in "${parts[@]}"; do start "ASan and UBSan: $part" bash tests/sanitized.sh build/asan $part; done
    start "TSan" bash tests/sanitized.sh build/tsan programs
    finish
  else
    failed+=("sanitizer builds")
  fi
fi
if python -c 'import torch' 2>/dev/null; then
  step "beside PyTorch" python -m pytest -q tests/compat
else
  echo "-- left out: tests/compat, which needs PyTorch in .venv (pip install torch)"
fi
echo "-- left out: everything that needs a GPU: ./run gpu, on a machine with one"
if ((${#failed[@]})); then
  recall
  exit 1
fi
echo "-- all passed"
