#!/usr/bin/env bash
# tests/some.sh FILE... [OPTION...]: what `./run test FILE...` runs. Files or folders of Python tests go to pytest, C++ files to the
# program that holds them; options go to both (pytest's -k, GoogleTest's --gtest_repeat=...).
set -euo pipefail
tree=build/release
python=() options=() failed=0
for word in "$@"; do
  case $word in
    *.cpp) ;;
    -*) options+=("$word") ;;
    *) if [ -e "${word%%::*}" ]; then python+=("$word"); else options+=("$word"); fi ;;
  esac
done
for word in "$@"; do
  [[ $word == *.cpp ]] || continue
  # The names of its tests choose among those of the program.
  filter=$(sed -nE 's/^TEST(_F)?\(([A-Za-z0-9_]+), *([A-Za-z0-9_]+)\).*/\2.\3/p' "$word" | paste -sd:)
  [ -n "$filter" ] || { echo "$word: there is no TEST in it" >&2; exit 2; }
  case $word in
    tests/core/*) program=core_tests ;;
    tests/files/*) program=files_tests ;;
    tests/plugins/*) program=kit_tests ;;
    *) echo "$word: C++ tests are in tests/core, tests/files and tests/plugins" >&2; exit 2 ;;
  esac
  ADJOIN_PLUGIN_PATH=$PWD/$tree/plugins "$tree/tests/$program" --gtest_filter="$filter" "${options[@]}" || failed=1
done
if ((${#python[@]})); then python -m pytest -q "${python[@]}" "${options[@]}" || failed=1; fi
if ((${#python[@]} == 0)) && ! [[ "$*" == *.cpp* ]]; then
  echo "./run test: no file of tests among: $*; wanted quick, --full or files such as tests/python/nn/module_test.py" >&2
  exit 2
fi
exit $failed
