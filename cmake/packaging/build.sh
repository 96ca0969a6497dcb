#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# The files of a release.
set -eu

usage() {
  cat <<'END'
sh cmake/packaging/build.sh OUT
Makes the files of a release in the folder OUT: the source archive, a TGZ, the DEBs of this system, the bill of materials, and SHA256SUMS.
In a git checkout the last commit is taken; elsewhere, such as in an unpacked source archive, the tree itself, and no source archive is made.
The same source and the same system make the same bytes. HOLDFAST_REPOSITORY and HOLDFAST_MAINTAINER of the environment are handed to CMake.
HOLDFAST_PACKAGE_FLAGS takes the place of -O2: with -O0 the packages are made sooner, to be looked at.
END
}

[ $# -eq 1 ] || { usage >&2; exit 64; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^project(holdfast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=holdfast-$version
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
umask 022

if [ -e .git ]; then
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  git archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$out/$name.tar.gz"
  tar -xzf "$out/$name.tar.gz" -C "$build"
else
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y CMakeLists.txt)} # of the commit, in an unpacked archive
  mkdir "$build/$name"
  tar -c --exclude=./build . | tar -x -C "$build/$name"
fi
export SOURCE_DATE_EPOCH

cd "$build/$name"
cmake --preset package ${HOLDFAST_PACKAGE_FLAGS:+"-DCMAKE_CXX_FLAGS_RELEASE=$HOLDFAST_PACKAGE_FLAGS"} \
  ${HOLDFAST_REPOSITORY:+"-DHOLDFAST_REPOSITORY=$HOLDFAST_REPOSITORY"} \
  ${HOLDFAST_MAINTAINER:+"-DHOLDFAST_MAINTAINER=$HOLDFAST_MAINTAINER"}
cmake --build --preset package
cpack --preset package
cp build/package/*.deb build/package/*.tar.gz "$out"
cp build/package/generated/holdfast.spdx.json "$out/$name.spdx.json"
cd "$out"
find . -maxdepth 1 -type f -name '*holdfast*' -printf '%f\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
cat SHA256SUMS
