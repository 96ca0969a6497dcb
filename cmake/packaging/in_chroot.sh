#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# What check.sh does inside of a chroot, as root: the packages are in /packages.
set -eu

usage() {
  cat <<'END'
sh cmake/packaging/in_chroot.sh build   installs what the packages are built from, and builds them
sh cmake/packaging/in_chroot.sh try     installs each package, uses it, removes it, and looks for what stays
END
}

export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -q --no-install-recommends "$@" >"$scratch/apt.log" 2>&1 || { cat "$scratch/apt.log"; exit 1; }; }
fail() { echo "failed: $1"; exit 1; }

step() { # name, command: runs it, and says how long that took
  name=$1
  shift
  start=$(date +%s)
  "$@"
  echo "  $name: $(($(date +%s) - start)) s"
}

build_packages() {
  distribution=$(. /etc/os-release && echo "debian-${VERSION_ID:-sid}")
  # shellcheck disable=SC2046 # word splitting wanted
  step "build tools" install dpkg-dev file $(sh cmake/quickstart.sh --packages "$distribution" | tr ' ' '\n' |
    grep -E '^(g\+\+|cmake|ninja-build|lib(boost(1\.[0-9]+)?|boost-json(1\.[0-9]+)?|hiredis|ssl|cli11|lua5\.1-0)-dev)$')
  rm -rf /packages
  step "packages" sh cmake/packaging/build.sh /packages
}

# Paths that a package could leave; apt's and dpkg's own notes are none, nor what the linker remembers of libraries.
paths() {
  find / -xdev \( -path /dev -o -path /proc -o -path /sys -o -path /tmp -o -path /holdfast -o -path /packages -o -path /var/cache \
    -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/log -o -path /etc/ld.so.cache \) -prune -o -print | LC_ALL=C sort
}

start_server() {
  bash -c 'exec -a redis-server redis-check-rdb --port 0 --unixsocket "$0" --save "" --appendonly no' "$scratch/redis.sock" >"$scratch/redis.log" 2>&1 &
  server=$!
  tries=0
  until redis-cli -s "$scratch/redis.sock" ping 2>/dev/null | grep -q PONG; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "no server: $(cat "$scratch/redis.log")"
    sleep 0.1
  done
}

# The first program of the README, and its lines for a build with CMake and for one without.
readme() {
  awk '/^```cpp$/ { text = ""; on = 1; next }
       /^```$/ { if (on && text ~ /int main\(/) { printf "%s", text; exit } on = 0 }
       on { text = text $0 "\n" }' README.md >"$scratch/app.cpp"
  [ -s "$scratch/app.cpp" ] || fail "README.md has no program"
  line=$(grep '^g++ .*app\.cpp' README.md)
  { echo 'cmake_minimum_required(VERSION 3.25)'; echo 'project(app LANGUAGES CXX)'; echo 'add_executable(app app.cpp)'
    grep -E '^(find_package\(holdfast|target_link_libraries\(app)' README.md
  } >"$scratch/CMakeLists.txt"
}

runs() { # program
  said=$("$1" "redis+unix://$scratch/redis.sock")
  [ "$said" = "charged 42
shipped 42" ] || fail "$1 printed: $said"
}

use_library() { # without CMake, and found by it
  (cd "$scratch" && eval "$line")
  runs "$scratch/app"
  cmake -S "$scratch" -B "$scratch/deb" >"$scratch/cmake.log" 2>&1 || { cat "$scratch/cmake.log"; exit 1; }
}

use_command_line() {
  holdfast --version
  said=$(holdfast run --url "redis+unix://$scratch/redis.sock" orders:42 -- echo "under the lock")
  [ "$said" = "under the lock" ] || fail "holdfast run printed: $said"
  [ -s /usr/share/man/man1/holdfast.1.gz ] || fail "no manual page"
}

use_archive() {
  mkdir "$scratch/prefix"
  tar -xzf /packages/holdfast-*-Linux-*.tar.gz -C "$scratch/prefix" --strip-components=1
  "$scratch/prefix/bin/holdfast" --version
  cmake -S "$scratch" -B "$scratch/tgz" "-DCMAKE_PREFIX_PATH=$scratch/prefix" >"$scratch/cmake.log" 2>&1 || { cat "$scratch/cmake.log"; exit 1; }
  cmake --build "$scratch/tgz" >"$scratch/cmake.log" 2>&1 || { cat "$scratch/cmake.log"; exit 1; }
  runs "$scratch/tgz/app"
}

# Boost's package of the release that built the archive, and what its library loads.
archive_needs() {
  dpkg-deb --field /packages/libholdfast-dev_*.deb Depends | grep -o 'libboost[^ ,]*'
  for package in /packages/libholdfast[0-9]*.deb /packages/holdfast_*.deb; do
    dpkg-deb --field "$package" Depends | tr ',' '\n' | sed 's/^ *//; s/[ (|].*//'
  done
}

try_packages() {
  step "a user's tools" install bash ca-certificates cmake g++ make pkgconf redis-tools
  paths >"$scratch/before"
  readme
  start_server
  step "install the shared library" install /packages/libholdfast[0-9]*.deb
  library=$(find /usr/lib -name 'libholdfast.so.*' -type f)
  ! ldd "$library" | grep 'not found' || fail "$library needs more than its package says"
  step "install the development files" install /packages/libholdfast-dev_*.deb
  step "use the library" use_library
  step "install the command line" install /packages/holdfast_*.deb
  step "use the command line" use_command_line
  step "remove the packages" apt-get purge -y -q --autoremove holdfast libholdfast-dev "$(basename "$(echo /packages/libholdfast[0-9]*.deb)" | sed 's/_.*//')" >"$scratch/apt.log"
  paths >"$scratch/after"
  diff "$scratch/before" "$scratch/after" || fail "the packages leave something"
  # shellcheck disable=SC2046 # word splitting wanted
  step "install what the archive needs" install $(archive_needs | sort -u)
  step "use the archive" use_archive
}

clean_up() {
  [ -z "$server" ] || { kill "$server"; wait "$server" || true; }
  rm -rf "$scratch"
}

server=
scratch=$(mktemp -d)
trap clean_up EXIT
cd "$(dirname "$0")/../.."
case ${1:-} in
  build) apt-get update -q >"$scratch/apt.log"; build_packages ;;
  try) apt-get update -q >"$scratch/apt.log"; try_packages ;;
  *) usage >&2; exit 64 ;;
esac
