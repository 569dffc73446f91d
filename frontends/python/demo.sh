#!/usr/bin/env bash
# frontends/python/demo.sh: what `./run demo` does once everything is built: train, then read the weights from C++.
set -euo pipefail
out=demo-out
args=("$@")
for ((i = 0; i < ${#args[@]}; i++)); do
  case ${args[i]} in
    --out) out=${args[i + 1]:?--out needs a folder} ;;
    --out=*) out=${args[i]#--out=} ;;
    -h | --help) exec python -m adjoin.demo.digits --help ;;
  esac
done
mkdir -p "$out"
stage=$ADJOIN_PREFIX

log=$out/log.txt
python -m adjoin.demo.digits --out "$out" "$@" | tee "$log" | sed '$d'
if [ ! -f "$out/digits.safetensors" ] || ! tail -1 "$log" | grep -q '^held-out accuracy'; then
  tail -1 "$log"
  exit 0
fi
echo "the same weights, read by a C++ program:"
g++ -std=c++20 -O2 frontends/cpp/examples/digits.cpp -o "$out/digits" $(pkg-config --cflags --libs adjoin) -Wl,-rpath,"$stage/lib"
"$out/digits" "$out/digits.safetensors" "$out/held_out.safetensors"
echo "pictures, weights and logs are in $out/"
tail -1 "$log"
