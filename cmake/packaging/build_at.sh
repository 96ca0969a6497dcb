#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
set -eu

usage() {
  cat >&2 <<'END_OF_USAGE'
sh cmake/packaging/build_at.sh REF|today|last agent|library
Builds one state of holdfast, and prints its folder: of a commit, of this tree, or of the last release.
  agent    FOLDER/agent, the program of the interop tests, of the same state
  library  FOLDER/libholdfast.so, with all types in its debug information
The last release is the newest tag v* before this commit; without one, the first state that other programs have used.
END_OF_USAGE
  exit 64
}

[ $# -eq 2 ] || usage
ref=$1
target=$2
case $target in
  agent) flags=-O0 shared=OFF ;;
  library) flags="-O0 -g" shared=ON ;;
  *) usage ;;
esac
first_state=2bff1f90
root=$(cd "$(dirname "$0")/../.." && pwd)

if [ "$ref" = last ]; then
  ref=$(git -C "$root" describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || echo $first_state)
fi
if [ "$ref" = today ]; then
  folder=$root/build/at/today
  source=$root
else
  commit=$(git -C "$root" rev-parse --verify --quiet "$ref^{commit}") || {
    echo "no such commit: $ref (a shallow clone? git fetch --unshallow --tags)" >&2
    exit 1
  }
  folder=$root/build/at/$commit
  source=$folder/source
  if [ ! -e "$source/CMakeLists.txt" ]; then
    rm -rf "$source"
    mkdir -p "$source"
    git -C "$root" archive "$commit" | tar -x -C "$source"
  fi
fi
build=$folder/$target
mkdir -p "$build"
echo "building $ref in $build" >&2
{
  cmake -G Ninja -S "$root/cmake/packaging/at" -B "$build" -DTREE="$source" -DBUILD_SHARED_LIBS=$shared \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="$flags" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=40
  cmake --build "$build" --parallel 2 --target "$target"
} >"$build/log" 2>&1 || {
  tail -n 20 "$build/log" >&2
  exit 1
}
echo "$build"
