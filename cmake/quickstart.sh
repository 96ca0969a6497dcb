#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
set -eu

usage() {
  cat <<'END'
sh cmake/quickstart.sh demo [ARGS]         build the demo and run it: --scene failover kills a primary that sentinels watch
sh cmake/quickstart.sh demo --page         the same on the page of holdfast serve, again and again until Ctrl-C
sh cmake/quickstart.sh test                build everything and run all tests
sh cmake/quickstart.sh test --server PATH  run the integration tests on this redis-server or valkey-server
sh cmake/quickstart.sh bench [ARGS]        build the benchmarks and run them: --only NAME, --json; --help lists them
sh cmake/quickstart.sh --packages DISTRO   print the packages needed: debian-12, debian-13, debian-sid or ubuntu-24.04
Missing packages are installed with apt-get; the line is printed first. Redis runs from a private folder; no service is touched.
END
}

# What the demo and the benchmarks need | what the tests need as well. ubuntu-24.04 was not run.
# redis-tools: redis-check-rdb is the server under another name, and no system service is started.
packages() {
  case $1 in
    debian-12)    echo "g++ cmake ninja-build libboost1.81-dev libhiredis-dev libssl-dev redis-tools | catch2 clang-16 clang-format-16 doxygen fish libboost-context1.81-dev libboost-json1.81-dev libclang-rt-16-dev libcli11-dev libgtest-dev liblua5.1-0-dev libspdlog-dev openssl pkgconf python3 python3-prometheus-client python3-venv zsh" ;;
    debian-13)    echo "g++ cmake ninja-build libboost-dev libhiredis-dev libssl-dev redis-tools | catch2 doxygen fish libboost-context-dev libboost-json-dev libcli11-dev libgtest-dev liblua5.1-0-dev libspdlog-dev openssl opentelemetry-cpp-dev pkgconf python3 python3-prometheus-client python3-venv zsh" ;;
    ubuntu-24.04) echo "g++ cmake ninja-build libboost-dev libhiredis-dev libssl-dev redis-tools | catch2 doxygen fish libboost-context-dev libboost-json-dev libcli11-dev libgtest-dev liblua5.1-0-dev libspdlog-dev openssl pkgconf python3 python3-prometheus-client python3-venv zsh" ;;
    debian-sid)   packages debian-13 ;;
    *) return 1 ;;
  esac
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() { # demo|page|test
  # Debian's sid has no number.
  distro=$(. /etc/os-release && echo "${ID:-}-${VERSION_ID:-sid}") || distro=unknown
  if ! wanted=$(packages "$distro"); then
    echo "No package list for $distro: going on with what is installed."
    return
  fi
  case $1 in
    test) ;;
    page) wanted="${wanted%|*} $(echo "$wanted" | grep -o 'lib\(cli11\|boost-json\)[^ ]*')" ;;
    *) wanted=${wanted%|*} ;;
  esac
  missing=
  for package in $wanted; do
    [ "$package" = '|' ] || installed "$package" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  case $missing in *libboost1.81-dev*)
    ! installed libboost1.74-dev || echo "Note: libboost1.81-dev replaces libboost1.74-dev, which conflicts with it." ;;
  esac
  sudo=
  [ "$(id -u)" = 0 ] || sudo=sudo
  echo "$sudo apt-get update && $sudo apt-get install -y --no-install-recommends$missing" | sed 's/^ //; s/&&  /\&\& /'
  # shellcheck disable=SC2086 # word splitting wanted
  $sudo apt-get update -q && $sudo apt-get install -y -q --no-install-recommends $missing
}

# Runs a command as its own process group, so that one signal reaches all that it started.
child=
run() {
  setsid "$@" &
  child=$!
  status=0
  wait "$child" || status=$?
  child=
  return "$status"
}

clean_up() {
  trap '' INT TERM HUP PIPE
  if [ -n "$child" ]; then
    kill -TERM "-$child" 2>/dev/null || true
    tries=0
    while kill -0 "-$child" 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -KILL "-$child" 2>/dev/null || true
  fi
  rm -rf "$TMPDIR"
}

configure() { # preset, options
  run cmake --preset "$@" >"$TMPDIR/configure.log" 2>&1 || { cat "$TMPDIR/configure.log"; return 1; }
}

build() { # preset, options of cmake --build
  install_packages "$1" || return 1
  configure "$1" || return 1
  run cmake --build --preset "$@"
}

build_page() {
  install_packages page || return 1
  configure demo || return 1
  run cmake --build --preset demo --target holdfast_demo holdfast_cli
}

# The tests need packages that the benchmarks do not. One row is about the page.
build_bench() {
  install_packages page || return 1
  configure release -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_EXAMPLES=OFF || return 1
  run cmake --build --preset release --target holdfast_bench
}

# The last lines of each failed test, since a log may be cut at its begin; skipped tests with reasons; the last line.
# A test that could not be run has failed.
summary() { # JUnit file
  awk '
    function attribute(name,   text) {
      text = $0
      if (!sub(".* " name "=\"", "", text)) return ""
      sub("\".*", "", text)
      return text
    }
    function print_end(   i) {
      for (i = lines > shown ? lines - shown + 1 : 1; i <= lines; i++) print "  " line[i % shown]
    }
    BEGIN { shown = 20 }
    /<testcase / { name = attribute("name"); status = attribute("status"); because = ""; lines = 0 }
    status == "fail" {
      sub("^\t*<system-out>", "")
      if (!/^\t*<\/?[a-z]/) line[++lines % shown] = $0
    }
    /<skipped message="SKIP_/ { status = "skipped" }
    status == "skipped" && /skipped: / { because = $0; sub(".*skipped: ", "", because) }
    /<\/testcase>/ {
      if (status == "run") passed++
      else if (status != "skipped") { failed++; print "failed: " name; print_end() }
      else { skipped++; print "skipped: " name " (" because ")" }
    }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 || passed == 0 }
  ' "$1" >"$TMPDIR/summary" || failed=1
  sed 's/&quot;/"/g; s/&apos;/'"'"'/g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' "$TMPDIR/summary"
  return "${failed:-0}"
}

# All tests; or, where a server is given, those that are about a real server.
run_tests() {
  if [ -n "$server" ]; then
    export HOLDFAST_TEST_REDIS="$server"
    "$server" --version
  fi
  if ! build test ${server:+--target holdfast_integration_tests}; then
    echo "The build failed: no test was run."
    echo "0 passed, 1 failed, 0 skipped"
    return 1
  fi
  rm -f build/test/junit.xml
  run ctest --preset test ${server:+--label-regex '^integration$'} || true # the summary decides
  [ -f build/test/junit.xml ] || : >build/test/junit.xml
  summary build/test/junit.xml
}

server=
if [ "${1:-} ${2:-}" = "test --server" ]; then
  [ $# -eq 3 ] && [ -f "$3" ] && [ -x "$3" ] || { usage >&2; exit 64; }
  server=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
fi
cd "$(dirname "$0")/.."
case ${1:-} in
  demo | test | bench) ;;
  --packages)
    list=$(packages "${2:-}") || { usage >&2; exit 64; }
    echo "${list%|*}${list#*| }"
    exit ;;
  *) usage >&2; exit 64 ;;
esac

TMPDIR=$(mktemp -d)
export TMPDIR
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 141' PIPE

mode=$1
shift
case $mode in
  test) run_tests ;;
  bench)
    build_bench >&2 # stdout is for the figures
    run build/release/tests/holdfast_bench "$@" ;;
  demo)
    if [ "${1:-}" = --page ]; then
      build_page
      shift
      set -- --page build/demo/src/cli/holdfast "$@"
    else
      build demo
    fi
    run build/demo/docs/demo/holdfast_demo "$@" ;;
esac
