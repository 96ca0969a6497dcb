#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# The packages, tried as their users do. Long: see CONTRIBUTING.md.
set -eu

usage() {
  cat <<'END'
sh cmake/packaging/check.sh chroots [SUITE...]   by default bookworm, trixie and sid: builds the packages there, and tries them in a clean system
                                                 (needs root and debootstrap); leaves them in build/packages/SUITE
sh cmake/packaging/check.sh lint FOLDER          lintian finds no error in the DEBs of the folder
sh cmake/packaging/check.sh twice                two builds of one commit, in two folders, have the same bytes
sh cmake/packaging/check.sh fetch                FetchContent and CPM build docs/guide/install.md's lines from a clone (CPM: a CPM.cmake)
sh cmake/packaging/check.sh conan                Conan 2 makes the package, and its test package uses it; on this system's libraries
sh cmake/packaging/check.sh vcpkg                vcpkg makes the port; without it, stand-ins for its commands do the same steps
sh cmake/packaging/check.sh sbom FILE            the validator of SPDX accepts the bill of materials
A part whose tool is missing says "skipped", and why. The last line counts.
END
}

cd "$(dirname "$0")/../.."
passed=0
skipped=0
pass() { echo "passed: $1"; passed=$((passed + 1)); }
skip() { echo "skipped: $1"; skipped=$((skipped + 1)); }
began() { start=$(date +%s); }
took() { echo "$(($(date +%s) - start)) s"; }

lint() { # folder
  command -v lintian >/dev/null || { skip "lintian is not installed"; return; }
  # Nobody has reported to Debian that it should have this package, so its changelog closes no report.
  lintian --no-cfg --fail-on error --suppress-tags initial-upload-closes-no-bugs --allow-root --color never "$1"/*.deb
  pass "lintian, $1"
}

tree_time() {
  if [ -e .git ]; then git log -1 --format=%ct; else stat -c %Y CMakeLists.txt; fi
}

chroots() { # suites
  root=${HOLDFAST_CHROOTS:-/var/tmp/holdfast-packages}
  for suite; do
    sh cmake/debian_chroot.sh "$suite" "$root/$suite" true
    [ -d "$root/$suite-build" ] || cp -a "$root/$suite" "$root/$suite-build"
    began
    sh cmake/debian_chroot.sh "$suite" "$root/$suite-build" env "SOURCE_DATE_EPOCH=$(tree_time)" sh cmake/packaging/in_chroot.sh build
    rm -rf "build/packages/$suite"
    mkdir -p "build/packages/$suite"
    cp "$root/$suite-build/packages/"* "build/packages/$suite"
    pass "$suite: built, $(took)"
    lint "build/packages/$suite"
    rm -rf "$root/$suite-clean"
    cp -a "$root/$suite" "$root/$suite-clean"
    mkdir "$root/$suite-clean/packages"
    cp "build/packages/$suite/"* "$root/$suite-clean/packages"
    began
    sh cmake/debian_chroot.sh "$suite" "$root/$suite-clean" sh cmake/packaging/in_chroot.sh try
    pass "$suite: installed, used and removed, $(took)"
    rm -rf "$root/$suite-clean"
  done
}

twice() {
  for build in first second; do
    began
    TMPDIR=$scratch sh cmake/packaging/build.sh "$scratch/$build" >"$scratch/$build.log" || { cat "$scratch/$build.log"; exit 1; }
    echo "$build build: $(took)"
  done
  diff "$scratch/first/SHA256SUMS" "$scratch/second/SHA256SUMS"
  cat "$scratch/first/SHA256SUMS"
  pass "two builds, the same bytes"
}

# A virtual environment with programs of PyPI; false where they cannot be had.
python_tools() { # packages
  python3 -m venv "$scratch/python" && "$scratch/python/bin/pip" install --quiet "$@"
}

# Debug, in few pieces: these checks are about the recipes.
quick="-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=40"

# The last commit as a release has it, and its recipes.
make_recipes() {
  version=$(sed -n 's/^project(holdfast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  archive=$scratch/downloads/holdfast-$version.tar.gz
  mkdir "$scratch/downloads"
  git archive --format=tar --prefix="holdfast-$version/" HEAD | gzip -n >"$archive"
  HOLDFAST_REPOSITORY='' sh cmake/packaging/recipes.sh "$archive" "$scratch/recipes"
}

# A project of one program, with the lines of install.md under a heading.
project() { # heading, folder
  mkdir "$2"
  cp tests/install/consumer/main.cpp "$2"
  {
    echo "cmake_minimum_required(VERSION 3.25)"
    echo "project(app LANGUAGES CXX)"
    echo "add_executable(app main.cpp)"
    awk -v heading="## $1" '/^## / { here = $0 == heading } here && /^```/ { on = !on; next } here && on' docs/guide/install.md
  } >"$2/CMakeLists.txt"
  grep -q GIT_TAG "$2/CMakeLists.txt" || { echo "failed: install.md has no lines for $1"; exit 1; }
}

build_project() { # folder, options of CMake
  folder=$1
  shift
  # shellcheck disable=SC2086 # word splitting wanted
  cmake -S "$folder" -B "$folder/build" -G Ninja $quick "-DHOLDFAST_REPOSITORY=file://$scratch/clone" "$@"
  cmake --build "$folder/build"
  status=0
  "$folder/build/app" nonsense://localhost || status=$?
  [ $status = 3 ] || { echo "failed: the program ended with $status"; exit 1; }
}

fetch() {
  git clone --quiet . "$scratch/clone"
  for tag in $(sed -n 's/.*GIT_TAG \(v[0-9.]*\).*/\1/p' docs/guide/install.md | sort -u); do git -C "$scratch/clone" tag -f "$tag"; done
  project FetchContent "$scratch/fetch"
  began
  build_project "$scratch/fetch"
  pass "FetchContent, $(took)"
  project CPM "$scratch/cpm"
  if [ -n "${CPM:-}" ]; then
    cp "$CPM" "$scratch/cpm/CPM.cmake"
  elif ! curl --silent --show-error --fail --location --max-time 60 --output "$scratch/cpm/CPM.cmake" \
    https://github.com/cpm-cmake/CPM.cmake/releases/latest/download/CPM.cmake; then
    skip "CPM: no CPM.cmake from GitHub; name one in CPM"
    return
  fi
  began
  build_project "$scratch/cpm" "-DCMAKE_MODULE_PATH=$scratch/cpm"
  pass "CPM, $(took)"
}

# Boost, hiredis and OpenSSL as the system has them: Conan's own packages of them need not be there.
conan() {
  python_tools 'conan>=2.1,<3' || { skip "Conan cannot be had from PyPI"; return; }
  make_recipes
  export CONAN_HOME="$scratch/conan"
  conan=$scratch/python/bin/conan
  $conan profile detect
  echo BOOST_VERSION HIREDIS_MAJOR HIREDIS_MINOR HIREDIS_PATCH OPENSSL_VERSION_MAJOR OPENSSL_VERSION_MINOR OPENSSL_VERSION_PATCH >"$scratch/names"
  # shellcheck disable=SC2046 # word splitting wanted
  set -- $(printf '#include <%s>\n' boost/version.hpp hiredis/hiredis.h openssl/opensslv.h | cat - "$scratch/names" | g++ -x c++ -E -P - | tail -n 1)
  for library in "boost $(($1 / 100000)).$(($1 / 100 % 1000)).$(($1 % 100))" "hiredis $2.$3.$4" "openssl $5.$6.$7"; do
    $conan create cmake/packaging/conan_stand_in.py --name "${library% *}" --version "${library#* }" --no-remote
  done
  began
  $conan create "$scratch/recipes/conan" --no-remote --settings compiler.cppstd=20 --settings build_type=Debug \
    --conf tools.cmake.cmaketoolchain:generator=Ninja --conf 'tools.cmake.cmaketoolchain:extra_variables={"CMAKE_UNITY_BUILD": "ON", "CMAKE_UNITY_BUILD_BATCH_SIZE": "40"}'
  pass "Conan, $(took)"
}

# A function with the name of the tool would be taken for the tool.
vcpkg_port() {
  make_recipes
  began
  if command -v vcpkg >/dev/null; then
    vcpkg install holdfast --overlay-ports="$scratch/recipes/vcpkg" --downloads-root="$scratch/downloads"
    pass "vcpkg, $(took)"
    return
  fi
  skip "vcpkg is not installed: its commands have stand-ins, and its dependencies are the system's"
  cmake "-DPORT=$scratch/recipes/vcpkg/holdfast" "-DDOWNLOADS=$scratch/downloads" "-DSCRATCH=$scratch/vcpkg" -P cmake/packaging/vcpkg_stand_in.cmake
  cmake -S tests/install/consumer -B "$scratch/consumer" -G Ninja -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_PREFIX_PATH=$scratch/vcpkg/installed"
  cmake --build "$scratch/consumer"
  status=0
  "$scratch/consumer/consumer" nonsense://localhost || status=$?
  [ $status = 3 ] || { echo "failed: the program ended with $status"; exit 1; }
  pass "the steps of the port, $(took)"
}

sbom() { # file
  python_tools 'spdx-tools>=0.8,<0.9' || { skip "spdx-tools cannot be had from PyPI"; return; }
  "$scratch/python/bin/pyspdxtools" --infile "$1"
  pass "the bill of materials is valid"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
part=${1:-}
[ $# -eq 0 ] || shift
case $part in
  chroots)
    [ $# -gt 0 ] || set -- bookworm trixie sid
    chroots "$@" ;;
  lint) [ $# -eq 1 ] || { usage >&2; exit 64; }; lint "$1" ;;
  sbom) [ $# -eq 1 ] || { usage >&2; exit 64; }; sbom "$1" ;;
  twice | fetch | conan) "$part" ;;
  vcpkg) vcpkg_port ;;
  *) usage >&2; exit 64 ;;
esac
echo "$part: $passed passed, $skipped skipped"
