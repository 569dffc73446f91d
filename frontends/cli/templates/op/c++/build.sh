#!/bin/sh
# build.sh [cuda|hip]: libaj_acme.so against the installed headers; of Adjoin there is nothing to link.
set -e
cd "$(dirname "$0")"
flags="-std=c++20 -O2 $(adjoin config --cflags) acme.cpp -o libaj_acme.so"
hide=$(adjoin config --ldflags)
case ${1:-cpu} in
  cpu) ${CXX:-c++} $flags -Wall -fPIC -shared $CXXFLAGS $hide ;;
  cuda)
    ${NVCC:-nvcc} -x cu $flags -arch=${CUDA_ARCH:-sm_90} --expt-relaxed-constexpr -shared $NVCCFLAGS \
      -Xcompiler -fPIC -Xlinker "${hide#-Wl,}" ;;
  hip) ${HIPCC:-hipcc} -x hip $flags --offload-arch=${HIP_ARCH:-gfx90a} -fPIC -shared $HIPFLAGS $hide ;;
  *) echo "build.sh: '$1' is not known: cpu, cuda, hip" >&2; exit 2 ;;
esac
