#!/usr/bin/env bash
# tests/sanitized.sh TREE: the C++ tests of a sanitizer build; with AddressSanitizer some Python tests too.
set -euo pipefail
tree=$1
# Reports go to files: what a test prints is caught by its runner, and lost where a report ends the process.
rm -f "$tree"/report.*
trap 'cat "$tree"/report.* 2>/dev/null || true' EXIT
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:log_path=$PWD/$tree/report
export ASAN_OPTIONS=log_path=$PWD/$tree/report
export TSAN_OPTIONS=halt_on_error=1
meson test -C "$tree" --no-rebuild --print-errorlogs --suite adjoin -t 4
case $tree in
  *asan)
    stage=$PWD/$tree/stage/usr/local
    preload="$(clang -print-file-name=libclang_rt.asan-x86_64.so) $(gcc -print-file-name=libstdc++.so.6)"
    # The interpreter keeps memory to its end: leaks of ours are looked for by the C++ tests. Left out: what measures memory,
    # forks, or starts a compiler, for the preloaded runtime goes along; and products by other code, minutes where it is
    # not optimized.
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 LD_PRELOAD=$preload PYTHONPATH=$stage/lib/adjoin/python ADJOIN_PREFIX=$stage \
      python -m pytest -q tests/ops tests/python -k 'not readme and not demo and not fork and not threads and not import and not memory and not other_code'
    # What the streams' threads hold lives as long as the process.
    for mode in test grad; do
      ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 ADJOIN_PREFIX=$stage \
        "$stage/bin/adjoin" conform "$stage/lib/adjoin/plugins-1/libaj_emulated.so" --mode $mode --largest 2000 \
          ${ADJOIN_TEST_SEED:+--seed "$ADJOIN_TEST_SEED"}
    done
    ;;
esac
