#!/bin/sh
# build.sh: libaj_acme.so against the installed headers; there is nothing to link.
cd "$(dirname "$0")" &&
  exec ${CC:-cc} -std=c99 -O2 -Wall -fPIC -shared $CFLAGS $(adjoin config --cflags) acme.c \
    -Wl,--version-script=acme.map -o libaj_acme.so
