#!/usr/bin/env bash
# Fetches the Debian package of serf into .cache/peers/serf, for `smg-chaos gameday --system serf`.
# Nothing is installed into the system; where a package cannot be fetched, an installed serf is used.
set -euo pipefail

cd "$(dirname "$0")/.."

FOLDER=.cache/peers/serf
PROGRAM=$FOLDER/usr/bin/serf

die() { printf 'serf: %s\n' "$*" >&2; exit 1; }

fetch() { # into the current folder
  apt-get download -q serf || {
    [ "$(id -u)" = 0 ] || return 1
    apt-get update -qq && apt-get download -q serf
  }
}

if ! "$PROGRAM" version >/dev/null 2>&1; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  chown _apt "$scratch" 2>/dev/null || true # as whom apt likes to fetch, where it may choose
  rm -rf "$FOLDER"
  mkdir -p "$(dirname "$PROGRAM")"
  if command -v apt-get >/dev/null && command -v dpkg >/dev/null && (cd "$scratch" && fetch) >&2; then
    dpkg -x "$scratch"/serf_*.deb "$FOLDER"
  elif command -v serf >/dev/null; then
    ln -s "$(command -v serf)" "$PROGRAM"
  else
    die "no package can be fetched with apt-get and no serf is installed (Debian, Ubuntu: apt-get install serf)"
  fi
fi
version=$("$PROGRAM" version) || die "$PROGRAM does not run"
printf 'serf: %s, version %s\n' "$PROGRAM" "${version%%$'\n'*}" >&2
