#!/bin/sh
# Makes what compose.yaml keeps secret, once: mesh.key, and .env with passwords. Needs nothing but this shell.
set -eu
cd "$(dirname "$0")"
word() { head -c "$1" /dev/urandom | base64 | tr -d '\n'; }
letters() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
# A file in compose keeps its owner and mode, and a node runs as 65532: readable, in a folder that is yours alone.
[ -e mesh.key ] || (umask 022; printf '%s\n' "$(word 32)" > mesh.key)
[ -e .env ] || (umask 077; printf 'DATABASE_PASSWORD=%s\nGRAFANA_PASSWORD=%s\n' "$(letters)" "$(letters)" > .env)
echo "mesh.key and .env are there"
