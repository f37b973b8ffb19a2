#!/usr/bin/env bash
# Writes the generated files below deploy; with --check, only says whether they are current.
set -euo pipefail

cd "$(dirname "$0")/.."

pages=(
  "reference/configuration.md smg_node.config.output.reference"
  "reference/errors.md smg_node.http.openapi.error_reference"
  "reference/http.md smg_node.http.openapi.route_reference"
  "reference/metrics.md smg_node.telemetry.metrics.reference"
  "reference/parsers.md smg_node.parsers.selection.parser_reference"
  "reference/alerts.md smg_node.telemetry.prometheus.alert_rules page"
  "prometheus/alerts.yaml smg_node.telemetry.prometheus.alert_rules rules"
  "prometheus/alerts_test.yaml smg_node.telemetry.prometheus.alert_rules tests"
  "prometheus/recording.yaml smg_node.telemetry.prometheus.recording_rules"
  "grafana/dashboards/overview.json smg_node.telemetry.grafana.files overview"
  "grafana/dashboards/routing.json smg_node.telemetry.grafana.files routing"
  "grafana/dashboards/limits.json smg_node.telemetry.grafana.files limits"
  "grafana/dashboards/mesh.json smg_node.telemetry.grafana.files mesh"
  "grafana/dashboards/history.json smg_node.telemetry.grafana.files history"
  "grafana/dashboards/processes.json smg_node.telemetry.grafana.files processes"
)

new=$(mktemp)
trap 'rm -f "$new"' EXIT
stale=0
for page in "${pages[@]}"; do
  read -r name module what <<<"$page"
  .venv/bin/python -m "$module" ${what:+"$what"} >"$new"
  if [ "${1:-}" != --check ]; then
    mkdir -p "$(dirname "deploy/$name")"
    cat "$new" >"deploy/$name"
  elif ! diff -u "deploy/$name" "$new"; then
    echo "deploy/$name is not current: run make reference" >&2
    stale=1
  fi
done
exit "$stale"
