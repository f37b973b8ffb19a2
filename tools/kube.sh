#!/usr/bin/env bash
# Makes .cache/kube/bin with a real API server of Kubernetes, its etcd and etcdctl, for `make kube-check`.
#
# The API server is built from Debian's source package: about ten minutes on two cores, once. Nothing is installed
# into the system; Go and all other packages are unpacked below .cache/kube and go away after the build.
set -euo pipefail

cd "$(dirname "$0")/.."

FOLDER=$PWD/.cache/kube
PROGRAMS=$FOLDER/bin
BUILD=$FOLDER/build
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
RELEASE=bookworm # the last one whose source package builds an API server: v1.20.2
ROOT=$BUILD/root # where packages are unpacked

die() { printf 'kube: %s\n' "$*" >&2; exit 1; }
say() { printf 'kube: %s\n' "$*" >&2; }

complete() {
  local program
  for program in kube-apiserver etcd etcdctl; do
    [ -x "$PROGRAMS/$program" ] || return 1
  done
}

apt_of_our_own() { # lists, cache and sources apart from the system's
  mkdir -p "$BUILD/apt/lists/partial" "$BUILD/apt/cache/archives/partial"
  local signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
  printf '%s %s %s %s main\n' deb "$signed" "$MIRROR" "$RELEASE" deb-src "$signed" "$MIRROR" "$RELEASE" \
    > "$BUILD/apt/sources.list"
  cat > "$BUILD/apt/options" <<END
Dir::Etc::SourceList "$BUILD/apt/sources.list";
Dir::Etc::SourceParts "-";
Dir::State::Lists "$BUILD/apt/lists";
Dir::Cache "$BUILD/apt/cache";
APT::Sandbox::User "root";
END
  export APT_CONFIG=$BUILD/apt/options
  apt-get update -qq
}

fetch() {
  say "fetching the source package and what builds it (150 MB)"
  (
    mkdir -p "$BUILD/packages"
    cd "$BUILD/packages"
    apt-get download -qq golang-1.19-go golang-1.19-src rsync libpopt0 libxxhash0 jq libjq1 libonig5 etcd-server etcd-client
    apt-get source -qq --download-only kubernetes
    local package
    for package in ./*.deb; do dpkg -x "$package" "$ROOT"; done
    rm -rf "$BUILD/kubernetes"
    dpkg-source --no-check -x ./kubernetes_*.dsc "$BUILD/kubernetes"
  ) >&2
}

build() {
  say "building kube-apiserver (about ten minutes)"
  (
    cd "$BUILD/kubernetes"
    export GOROOT=$ROOT/usr/lib/go-1.19 GO111MODULE=off GOPATH=$BUILD/go GOCACHE=$BUILD/go-cache
    export PATH=$GOROOT/bin:$ROOT/usr/bin:$PATH LD_LIBRARY_PATH=$ROOT/usr/lib/$(uname -m)-linux-gnu
    export KUBE_GIT_VERSION=v1.20.2 KUBE_GIT_COMMIT=none KUBE_GIT_TREE_STATE=clean FORCE_HOST_GO=y GOLDFLAGS='-s -w'
    nice -n 19 make WHAT=cmd/kube-apiserver GOFLAGS= DBG=
  ) > "$FOLDER/build.log" 2>&1 || { tail -n 20 "$FOLDER/build.log" >&2; die "the build failed; see .cache/kube/build.log"; }
}

keep() { # the three programs only: sources and Go are 3 GB
  mkdir -p "$PROGRAMS"
  cp "$ROOT/usr/bin/etcd" "$ROOT/usr/bin/etcdctl" "$PROGRAMS/"
  cp "$BUILD/kubernetes/_output/local/bin/linux/"*/kube-apiserver "$PROGRAMS/kube-apiserver"
  chmod -R u+w "$BUILD" && rm -rf "$BUILD"
}

if ! complete; then
  for needed in apt-get dpkg dpkg-source make gcc perl; do
    command -v "$needed" >/dev/null || die "$needed is missing (Debian, Ubuntu: apt-get install dpkg-dev build-essential)"
  done
  apt_of_our_own
  fetch
  build
  keep
fi
say "$("$PROGRAMS/kube-apiserver" --version), $("$PROGRAMS/etcd" --version | head -n 1)"
