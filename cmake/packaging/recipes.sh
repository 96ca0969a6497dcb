#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# The recipes of a release for Conan and vcpkg.
set -eu

usage() {
  cat <<'END'
sh cmake/packaging/recipes.sh ARCHIVE OUT
Writes in the folder OUT what Conan and vcpkg need to build the source archive ARCHIVE: OUT/conan, for `conan create OUT/conan`, and
OUT/vcpkg/holdfast, for `vcpkg install holdfast --overlay-ports=OUT/vcpkg`. With the address of the repository in HOLDFAST_REPOSITORY, they
fetch the archive from its release. Without it Conan takes ARCHIVE, and vcpkg wants it in its folder `downloads`.
END
}

[ $# -eq 2 ] && [ -f "$1" ] || { usage >&2; exit 64; }
archive=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
version=$(basename "$archive" .tar.gz)
version=${version#holdfast-}
homepage=${HOLDFAST_REPOSITORY:-}
address=file://$archive
[ -z "$homepage" ] || address=$homepage/releases/download/v$version/holdfast-$version.tar.gz
sha256=$(sha256sum "$archive" | cut -d' ' -f1)
sha512=$(sha512sum "$archive" | cut -d' ' -f1)

rm -rf "$out/conan" "$out/vcpkg"
cp -r packaging/conan packaging/vcpkg "$out"
cp tests/install/consumer/CMakeLists.txt tests/install/consumer/main.cpp "$out/conan/test_package"
cat >"$out/conan/conandata.yml" <<END
homepage: "$homepage"
sources:
  "$version":
    url: "$address"
    sha256: "$sha256"
END
for file in portfile.cmake vcpkg.json; do
  sed "s|@version@|$version|; s|@homepage@|$homepage|; s|@archive_address@|$address|; s|@sha512@|$sha512|" \
    "packaging/vcpkg/holdfast/$file.in" >"$out/vcpkg/holdfast/$file"
  rm "$out/vcpkg/holdfast/$file.in"
done
# vcpkg refuses an address that is empty.
[ -n "$homepage" ] || sed -i '/"homepage"/d' "$out/vcpkg/holdfast/vcpkg.json"
