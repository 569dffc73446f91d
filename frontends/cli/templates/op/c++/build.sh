#!/bin/sh
# build.sh [cuda|hip]: libaj_acme.so against the installed headers; of Adjoin there is nothing to link.
set -e
cd "$(dirname "$0")"
flags="-std=c++20 -O2 $(adjoin config --cflags)"
case ${1:-cpu} in
  cpu) ${CXX:-c++} $flags -Wall -fPIC -shared $CXXFLAGS acme.cpp -Wl,--version-script=acme.map -o libaj_acme.so ;;
  cuda)
    ${NVCC:-nvcc} -x cu $flags -arch=${CUDA_ARCH:-sm_90} --expt-relaxed-constexpr -Xcompiler -fPIC -shared $NVCCFLAGS acme.cpp \
      -Xlinker --version-script=acme.map -o libaj_acme.so ;;
  hip)
    ${HIPCC:-hipcc} -x hip $flags --offload-arch=${HIP_ARCH:-gfx90a} -fPIC -shared $HIPFLAGS acme.cpp \
      -Wl,--version-script=acme.map -o libaj_acme.so ;;
  *) echo "build.sh: '$1' is not known: cpu, cuda, hip" >&2; exit 2 ;;
esac
