#!/usr/bin/env bash
# Installs what building and running the project needs: Debian packages (through sudo when not
# root), and LightGBM into build/deps. Fast when everything is there.
#
#   scripts/install_dependencies.sh           what `make demo` and `pip install .` need
#   scripts/install_dependencies.sh --python  also what `make test` needs: the packages of
#                                             scripts/requirements-python.txt
#   scripts/install_dependencies.sh --ci      also what .ci/run needs (clang 19, valgrind, Triton,
#                                             libtorch, and what --docs installs)
#   scripts/install_dependencies.sh --docs    what `make docs` and the generators of the reference
#                                             need: the packages of scripts/requirements-docs.txt
#   scripts/install_dependencies.sh --torch   also libtorch, which trains neural models
#   scripts/install_dependencies.sh --bench   also the libraries that bench/ measures beside ours
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ cmake ninja-build ccache make git ca-certificates patchelf
  libexpected-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev zlib1g-dev libzstd-dev libasmjit-dev libgtest-dev libgmock-dev
  libonnx-dev libprotobuf-dev
  python3 python3-dev python3-venv
)
wants_python=""
wants_triton=""
wants_peers=""
wants_docs=""
case "${1:-}" in
  "") ;;
  --python) wants_python=yes ;;
  --ci)
    wants_python=yes
    wants_triton=yes
    wants_docs=yes
    packages+=(python3-clang-19 groff-base clang-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev valgrind
               libtorch-dev python3-torch libopenblas0-pthread libonnx-testdata)
    ;;
  # The documentation is made without building anything.
  --docs)
    wants_docs=yes
    packages=(ca-certificates python3 python3-venv python3-clang-19 g++ libexpected-dev)
    ;;
  # OpenBLAS beside it, or Debian's libtorch multiplies matrices with the reference BLAS.
  --torch) packages+=(libtorch-dev libopenblas0-pthread) ;;
  --bench)
    wants_peers=yes
    packages+=(libblis4-pthread libxsmm-dev libeigen3-dev libgraphblas-dev librsb-dev)
    ;;
  *)
    echo "unknown argument: $1 (known: --python, --ci, --docs, --bench, --torch)" >&2
    exit 2
    ;;
esac

as_root() {
  if [[ "$(id -u)" -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "root rights are needed for: $*" >&2
    exit 1
  fi
}

install_packages() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 \
    -o DPkg::Lock::Timeout=120 install --no-install-recommends "$@"
}

missing=()
for package in "${packages[@]}"; do
  if [[ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" != *"ok installed"* ]]; then
    missing+=("$package")
  fi
done
mkdir -p build/deps
if [[ ${#missing[@]} -gt 0 ]]; then
  echo "installing: ${missing[*]}"
  log=build/deps/apt.log
  # Package lists may be absent or stale on a fresh machine: refresh them and try once more.
  if ! install_packages "${missing[@]}" >"$log" 2>&1; then
    as_root apt-get -q -o Acquire::Retries=3 update >>"$log" 2>&1 || true
    install_packages "${missing[@]}" >>"$log" 2>&1 || {
      tail -n 20 "$log" >&2
      exit 1
    }
  fi
fi

# Two runs at once (two presets, two terminals) must not work in the same folders.
deps="$PWD/build/deps"
exec 9>"$deps/lock"
flock 9

make_venv() { # make_venv [FOLDER]
  local folder="${1:-build/venv}"
  if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    /usr/bin/python3 -m venv --clear "$folder"
  fi
}

# The Python package is built and tested against fixed versions, each checked by its hash.
install_python_packages() { # install_python_packages REQUIREMENTS [FOLDER]
  local folder="${2:-build/venv}"
  if ! cmp --silent "$1" "$folder/$(basename "$1")"; then
    echo "installing the Python packages of $1 into $folder"
    make_venv "$folder"
    PYTHONDONTWRITEBYTECODE=1 "$folder/bin/python" -m pip install --quiet \
      --disable-pip-version-check --only-binary :all: --require-hashes -r "$1"
    cp "$1" "$folder/"
  fi
}
if [[ -n "$wants_python" ]]; then
  install_python_packages scripts/requirements-python.txt
fi
if [[ -n "$wants_triton" ]]; then
  install_python_packages scripts/requirements-triton.txt
fi
if [[ -n "$wants_docs" ]]; then
  install_python_packages scripts/requirements-docs.txt build/docs-venv
  if [[ "${1:-}" == --docs ]]; then
    exit 0
  fi
fi
# Wheels of libraries, not of Python packages: without what they name as needed.
install_peers() { # install_peers REQUIREMENTS FOLDER
  if ! cmp --silent "$1" "build/peers/$(basename "$1")"; then
    echo "installing the libraries of $1 into $2"
    make_venv
    build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
      --ignore-installed --only-binary :all: --require-hashes --prefix "$2" -r "$1"
    cp "$1" build/peers/
  fi
}
if [[ -n "$wants_peers" ]]; then
  mkdir -p build/peers
  install_peers scripts/requirements-peers.txt build/peers
  install_peers scripts/requirements-peers-openmp.txt build/peers/openmp
fi

# LightGBM trains the trees: the shared library of its Python wheel and the headers of its source
# archive, both pinned by hash; pip fetches them from whatever index the machine is set up with, in
# a virtual environment because Debian's own pip installs nothing outside one. The library gets a
# name of its own, or a Python process that has imported lightgbm would give us that one instead.
prefix="$deps/lightgbm"
if cmp --silent scripts/requirements.txt "$prefix/complete"; then
  exit 0
fi
echo "fetching LightGBM"
make_venv
rm -rf "$prefix"
mkdir -p "$prefix/lib" "$prefix/wheel"
fetch() {
  PYTHONDONTWRITEBYTECODE=1 build/venv/bin/python -m pip download --quiet \
    --disable-pip-version-check --no-deps --require-hashes -r scripts/requirements.txt -d "$prefix" \
    "$@"
}
fetch --only-binary :all:
# Absolute, because pip asks from inside the unpacked archive.
PYTHONPATH="$PWD/scripts/archive_only" fetch --no-build-isolation --no-binary lightgbm
tar -xzf "$prefix"/lightgbm-*.tar.gz -C "$prefix" --strip-components=1 --wildcards \
  --no-wildcards-match-slash 'lightgbm-*/include/LightGBM' 'lightgbm-*/LICENSE'
/usr/bin/python3 -m zipfile -e "$prefix"/lightgbm-*.whl "$prefix/wheel"
cp "$prefix/wheel/lightgbm/lib/lib_lightgbm.so" "$prefix/lib/libforetune_lightgbm.so"
patchelf --set-soname libforetune_lightgbm.so "$prefix/lib/libforetune_lightgbm.so"
rm -rf "$prefix"/lightgbm-*.tar.gz "$prefix"/lightgbm-*.whl "$prefix/wheel"
cp scripts/requirements.txt "$prefix/complete"
