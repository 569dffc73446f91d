#!/usr/bin/env bash
# tests/lint/all.sh [--write]: walls between the rooms, sizes, one definition of each type, no second list of ops, form, what GPU
# kernels became. --write puts files into form first.
set -euo pipefail
if [ "${1:-}" = --write ]; then bash tests/lint/format.sh --write; fi
failed=0
python3 tests/lint/house.py || failed=1
python3 tests/lint/twins.py || failed=1
python3 tests/lint/names.py || failed=1
.venv/bin/ruff check -q . || failed=1
bash tests/lint/format.sh || failed=1
python3 tests/lint/tidy.py || failed=1
python3 tests/lint/machine_code.py --quiet || failed=1
exit $failed
