#!/usr/bin/env bash
# Writes the generated pages under deploy/reference; with --check, only says whether they are current.
set -euo pipefail

cd "$(dirname "$0")/.."

pages=(
  configuration.md:smg_node.config.reference
  http.md:smg_node.http.reference
  http.md:smg_node.http.reference
  metrics.md:smg_node.telemetry.reference
)

new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
stale=0
for page in "${pages[@]}"; do
  name=${page%%:*}
  .venv/bin/python -m "${page#*:}" >"$new/$name"
  if [ "${1:-}" != --check ]; then
    mkdir -p deploy/reference
    cp "$new/$name" "deploy/reference/$name"
  elif ! diff -u "deploy/reference/$name" "$new/$name"; then
    echo "deploy/reference/$name is not current: run make reference" >&2
    stale=1
  fi
done
exit "$stale"
