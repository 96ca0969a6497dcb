#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
set -eu

if [ "${1:-}" = --help ]; then
  cat >&2 <<'END_OF_USAGE'
sh tests/interop/wire.sh [REF [--row TEXT]]
Runs two versions of holdfast side by side on one Redis: REF, by default the last release, and this tree. Each kind of lock that both know is
held, awaited, renewed, passed on and broken in both directions. Builds both versions first. Exit status 77: no Redis server.
END_OF_USAGE
  exit 64
fi
here=$(cd "$(dirname "$0")" && pwd)
ref=${1:-last}
[ $# -eq 0 ] || shift
build_at=$here/../../cmake/packaging/build_at.sh
old=$(sh "$build_at" "$ref" agent)
new=$(sh "$build_at" today agent)
exec python3 "$here/wire_test.py" "$old" "$new" "$@"
