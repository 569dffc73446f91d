#!/bin/sh
# check.sh: everything that shows that the backend works: builds it, drives it through the contract
# (its certificate is conform.html), trains a network of digits on it beside the reference backend.
set -e
cd "$(dirname "$0")"
./build.sh
adjoin plugins check libaj_acme.so
adjoin conform libaj_acme.so --mode all --html conform.html "$@"
if ! python3 -c 'import adjoin, sklearn' 2>/dev/null; then
  echo "check: no training, for Python lacks adjoin or sklearn"
  exit 0
fi
ADJOIN_PLUGIN_PATH="$PWD${ADJOIN_PLUGIN_PATH:+:$ADJOIN_PLUGIN_PATH}" python3 train.py acme
