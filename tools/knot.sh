#!/usr/bin/env bash
# Fetches the Debian packages of the name server knot into .cache/knot, for the tests of workers found by names.
# Nothing is installed into the system; an installed knotd is used where there is one.
set -euo pipefail

cd "$(dirname "$0")/.."

export PATH="$PATH:/usr/local/sbin:/usr/sbin" # where an installed one is, and not everybody looks
FOLDER=.cache/knot
PROGRAM=$FOLDER/knotd

die() { printf 'knot: %s\n' "$*" >&2; exit 1; }

works() { "$PROGRAM" --version >/dev/null 2>&1; }

# knot and what it needs of what is not installed here, by what apt would install.
needed() {
  apt-get install --simulate --no-install-recommends -qq knot | sed -n 's/^Inst \([^ ]*\) .*/\1/p'
}

fetch() { # into the folder $1
  local names
  names=$(needed) && [ -n "$names" ] || return 1
  # shellcheck disable=SC2086 # names are words
  (cd "$1" && apt-get download -q $names)
}

unpack() { # FOLDER
  local package
  rm -rf "$FOLDER"
  mkdir -p "$FOLDER/root"
  for package in "$1"/*.deb; do dpkg -x "$package" "$FOLDER/root"; done
  # Its libraries lie beside it, not in the system.
  cat >"$PROGRAM" <<'PROGRAM'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root
for folder in "$root"/usr/lib/*-linux-gnu* "$root"/lib/*-linux-gnu*; do
  [ -d "$folder" ] && LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
done
export LD_LIBRARY_PATH
exec "$root/usr/sbin/knotd" "$@"
PROGRAM
  chmod +x "$PROGRAM"
}

if ! works; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  chown _apt "$scratch" 2>/dev/null || true # as whom apt likes to fetch, where it may choose
  mkdir -p "$FOLDER"
  if command -v knotd >/dev/null; then
    ln -sf "$(command -v knotd)" "$PROGRAM"
  elif command -v apt-get >/dev/null && command -v dpkg >/dev/null; then
    fetch "$scratch" >&2 || {
      # Lists of packages that are missing or old are made new, where that is allowed.
      [ "$(id -u)" = 0 ] && apt-get update -qq >&2 && fetch "$scratch" >&2
    } || die "the packages of knot cannot be fetched (Debian, Ubuntu: apt-get install knot)"
    unpack "$scratch"
  else
    die "no package can be fetched with apt-get and no knotd is installed (Debian, Ubuntu: apt-get install knot)"
  fi
fi
version=$("$PROGRAM" --version) || die "$PROGRAM does not run"
printf 'knot: %s, %s\n' "$PROGRAM" "$version" >&2
