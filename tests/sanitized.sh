#!/usr/bin/env bash
# tests/sanitized.sh TREE PART: tests of a sanitizer build. Parts: programs (the C++ tests), and with AddressSanitizer rows (tests/ops),
# python (tests/python), conform (the emulated GPU's conformance): of each a part, chosen by ADJOIN_TEST_SEED (all with --full); and
# paper (every row of the plugins cuda and hip on the simulated card), with --full.
set -euo pipefail
tree=$1 part=$2
# Reports go to files: what a test prints is caught by its runner, and lost where a report ends the process.
report=$PWD/$tree/report-$part
rm -f "$report".*
trap 'cat "$report".* 2>/dev/null || true' EXIT
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:log_path=$report
export ASAN_OPTIONS=log_path=$report
export TSAN_OPTIONS=halt_on_error=1
stage=$PWD/$tree/stage/usr/local

# The interpreter keeps memory to its end, and so do the streams' threads what they hold: leaks of ours are looked for by the C++
# tests. Left out: what measures memory, forks, or starts a compiler, for the preloaded runtime goes along; and what takes minutes
# where code is not optimized and reads no memory of its own: products by other code, examples that learn, names one after the other.
interpreted() {
  local preload
  preload="$(clang -print-file-name=libclang_rt.asan-x86_64.so) $(gcc -print-file-name=libstdc++.so.6)"
  ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 LD_PRELOAD=$preload PYTHONPATH=$stage/lib/adjoin/python ADJOIN_PREFIX=$stage \
    ADJOIN_TEST_SHARE=${ADJOIN_TEST_SHARE:-12} python -m pytest -q "$1" -k 'not readme and not demo and not fork and not threads and not import and not memory and not other_code and not it_learns and not what_is_served'
}

case $part in
  programs) meson test -C "$tree" --no-rebuild --print-errorlogs --suite adjoin -t 4 ;;
  rows) interpreted tests/ops ;;
  python) interpreted tests/python ;;
  conform)
    export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 ADJOIN_PREFIX=$stage
    share=8 some=()
    if [ "${ADJOIN_TEST_FULL:-0}" = 1 ]; then share=1; fi
    while read -r name; do some+=(--op "$name"); done < <("$stage/bin/adjoin" ops |
      awk -v share=$share -v seed="${ADJOIN_TEST_SEED:-0}" '/^[0-9]+ ops$/ { exit } (NR + seed) % share == 0 { print $1 }')
    for mode in test grad; do
      "$stage/bin/adjoin" conform "$stage/lib/adjoin/plugins-1/libaj_emulated.so" --mode $mode --largest 2000 --timeout 300 \
        ${ADJOIN_TEST_SEED:+--seed "$ADJOIN_TEST_SEED"} "${some[@]}"
    done
    ;;
  paper)
    export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
    python tests/plugins/paper_sanitized.py "$tree" --mode all --largest 2000 --timeout 300 ${ADJOIN_TEST_SEED:+--seed "$ADJOIN_TEST_SEED"}
    ;;
  *) echo "no part is called '$part'; programs, rows, python, conform, paper" >&2; exit 2 ;;
esac
