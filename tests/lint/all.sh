#!/usr/bin/env bash
# tests/lint/all.sh: walls between the rooms, sizes, one definition of each type, names of ops, formatting of Python.
set -euo pipefail
python3 tests/lint/house.py
python3 tests/lint/twins.py
python3 tests/lint/names.py
if [ -x .venv/bin/ruff ]; then .venv/bin/ruff check -q .; else echo "ruff is missing: Python is not checked"; exit 1; fi
