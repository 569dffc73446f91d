#!/bin/sh
# check.sh: builds the op and tries it; a word (cuda, hip) goes to build.sh.
set -e
cd "$(dirname "$0")"
./build.sh "$@"
adjoin plugins check libaj_acme.so
adjoin opcheck libaj_acme.so
python3 test.py
