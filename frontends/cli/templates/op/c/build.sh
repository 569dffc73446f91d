#!/bin/sh
# build.sh: libaj_acme.so against the installed headers; there is nothing to link.
cd "$(dirname "$0")" &&
  exec ${CC:-cc} -std=c99 -O2 -Wall -fPIC -shared $CFLAGS acme.c \
    $(adjoin config --cflags --ldflags) -o libaj_acme.so
