#!/usr/bin/env bash
# Generates the Python of proto/smg_proto/*.proto; with --check, only says whether it is current.
#
# Messages only: methods are registered by name, so there is no service code (*_pb2_grpc.py).
# The generator is pinned by the lock, and is the oldest protobuf's that the project allows.
set -euo pipefail

cd "$(dirname "$0")/.."

new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
.venv/bin/python -m grpc_tools.protoc --proto_path=proto --python_out="$new" --pyi_out="$new" \
  proto/smg_proto/*.proto

if [ "${1:-}" != --check ]; then
  rm -f proto/smg_proto/*_pb2.py proto/smg_proto/*_pb2.pyi
  cp "$new"/smg_proto/* proto/smg_proto/
  exit
fi

# Both ways, so that the modules of a .proto that is gone are noticed too.
stale=0
for path in "$new"/smg_proto/* proto/smg_proto/*_pb2.py proto/smg_proto/*_pb2.pyi; do
  name=${path##*/}
  if ! diff -u "proto/smg_proto/$name" "$new/smg_proto/$name"; then
    echo "proto/smg_proto/$name is not current: run make proto" >&2
    stale=1
  fi
done
exit "$stale"
