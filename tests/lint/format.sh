#!/usr/bin/env bash
# tests/lint/format.sh [--write]: C++ as .clang-format says, Python as ruff says, shell as shellcheck likes it. --write changes files.
set -euo pipefail
for tool in clang-format shellcheck .venv/bin/ruff; do
  command -v $tool >/dev/null || { echo "$tool is missing; ./run setup installs it"; exit 1; }
done
# The contract is set by hand, line by line; frozen copies and what was compiled once stay as they are; templates are no C++ yet.
mapfile -t code < <(git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp' '*.hpp' '*.cu' '*.cuh' |
  grep -vE '^(abi/[a-z_]+\.h|tests/abi/(v1\.0-rc2|golden)/|frontends/cli/templates/)' | while read -r f; do [ -f "$f" ] && echo "$f"; done)
mapfile -t shell < <(git ls-files '*.sh' run .ci/run)
failed=0
if [ "${1:-}" = --write ]; then
  printf '%s\n' "${code[@]}" | xargs -n 40 -P "$(nproc)" clang-format -i
  .venv/bin/ruff format -q .
else
  printf '%s\n' "${code[@]}" | xargs -n 40 -P "$(nproc)" clang-format --dry-run -Werror --ferror-limit=1 || failed=1
  .venv/bin/ruff format -q --check . || failed=1
fi
shellcheck -S warning -e SC2046 "${shell[@]}" || failed=1  # SC2046: flags are words on purpose
if [ $failed = 1 ]; then echo "not in form; ./run lint --write puts C++ and Python into it"; fi
exit $failed
