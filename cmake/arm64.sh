#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Unit tests, the scripts' tests and the simulator as arm64 programs, under qemu-user.
set -eu

usage() {
  cat <<'END_OF_USAGE'
sh cmake/arm64.sh [--seeds N] [FOLDER]
Makes a chroot of Debian sid in FOLDER, by default /var/tmp/holdfast-arm64, with cmake/debian_chroot.sh. Cross-compiles this checkout there
with g++-aarch64-linux-gnu and arm64 libraries. Then runs under qemu-user: the unit tests, the tests of the scripts, and N seeds of the
simulator, by default 1000. Redis is the chroot's own program, not an arm64 one. Needs root and debootstrap.
Emulation on x86 keeps x86's memory order: errors of memory order stay hidden.
END_OF_USAGE
}

native_packages="cmake ninja-build g++-aarch64-linux-gnu qemu-user redis-tools"
arm64_packages="libboost-dev libcatch2-dev libhiredis-dev liblua5.1-0-dev libssl-dev libstdc++6"
out=build/arm64
emulator=qemu-aarch64

install_packages() {
  dpkg --add-architecture arm64
  apt-get update -q
  # shellcheck disable=SC2046,SC2086 # word splitting wanted
  apt-get install -y -q --no-install-recommends $native_packages $(printf '%s:arm64 ' $arm64_packages)
}

build() {
  cmake --preset test -B $out -DHOLDFAST_BUILD_EXAMPLES=OFF "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_CROSSCOMPILING_EMULATOR=$emulator
  cmake --build $out --target holdfast holdfast_unit_tests holdfast_sim_tests holdfast_sim
}

# One process for all tests of a program: to start one under the emulator costs more than most tests. Skipped tests are
# an error, because everything that they need is installed.
run_tests() { # program
  echo "--- $emulator $1"
  $emulator "$out/tests/$1"
}

# A thousand seeds do not meet everything that ten thousand must meet, so the exit status does not decide.
run_simulator() { # seeds
  echo "--- $emulator sim/holdfast_sim --seeds $1"
  $emulator $out/tests/sim/holdfast_sim --seeds "$1" >$out/sim.log || true
  tail -n 3 $out/sim.log
  grep -q "^$1 seeds, .* 0 violations in " $out/sim.log
}

cross_build_and_run() { # seeds
  install_packages
  build
  failed=
  run_tests holdfast_unit_tests || failed="$failed, unit tests"
  run_tests sim/holdfast_sim_tests || failed="$failed, the scripts' tests"
  run_simulator "$1" || failed="$failed, the simulator"
  echo "arm64 by $(aarch64-linux-gnu-g++ --version | head -n 1), under $($emulator --version | head -n 1):"
  [ -z "$failed" ] || { echo "failed: ${failed#, }"; exit 1; }
  echo "passed: unit tests, the scripts' tests, $1 seeds of the simulator"
}

seeds=1000
if [ "${1:-}" = --seeds ]; then
  case ${2:-} in '' | *[!0-9]*) usage >&2; exit 64 ;; esac
  seeds=$2
  shift 2
fi
case $#:${1:-} in
  1:--inside) cross_build_and_run "$seeds" ;; # this script itself, in the chroot
  1:-* | [!01]:*) usage >&2; exit 64 ;;
  *) exec sh "$(dirname "$0")/debian_chroot.sh" sid "${1:-/var/tmp/holdfast-arm64}" sh cmake/arm64.sh --seeds "$seeds" --inside ;;
esac
