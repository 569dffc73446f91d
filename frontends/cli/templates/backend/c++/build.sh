#!/bin/sh
# build.sh: libaj_acme.so against the installed headers; there is nothing to link.
cd "$(dirname "$0")" &&
  exec ${CXX:-c++} -std=c++20 -O2 -Wall -fPIC -shared $CXXFLAGS $(adjoin config --cflags) acme.cpp \
    -Wl,--version-script=acme.map -o libaj_acme.so
