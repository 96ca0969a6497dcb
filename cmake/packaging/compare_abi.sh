#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
set -eu

if [ $# -gt 1 ] || [ "${1:-}" = --help ]; then
  cat >&2 <<'END_OF_USAGE'
sh cmake/packaging/compare_abi.sh [REF]
Compares the ABI of REF (by default the last release) with that of this tree, by abidiff of Debian's abigail-tools. Builds both.
Exit status 1: the ABI breaks, and the soname is the same. 77: no abidiff.
END_OF_USAGE
  exit 64
fi
command -v abidiff >/dev/null || {
  echo "skipped: no abidiff: apt-get install abigail-tools"
  exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
old=$(sh "$here/build_at.sh" "${1:-last}" library)
new=$(sh "$here/build_at.sh" today library)

# Types of Asio and of the standard library change with the compiler and with Boost: only ours are judged.
changes=$new/abi_changes
status=0
abidiff --drop-private-types --headers-dir1 "$old/../source/include" --headers-dir2 "$here/../../include" \
  "$old/libholdfast.so" "$new/libholdfast.so" >"$changes" || status=$?

# The bits of abidiff's status: 1 error, 2 usage, 4 a change, 8 a change that breaks programs.
[ $((status & 3)) -eq 0 ] || {
  cat "$changes" >&2
  exit 1
}
sed -n '1,40p' "$changes"
soname() { objdump -p "$1/libholdfast.so" | sed -n 's/^ *SONAME *//p'; }
echo "all changes: $changes; sonames: $(soname "$old") and $(soname "$new")"
if [ $((status & 8)) -eq 0 ]; then
  echo "programs that were linked with the old library run with the new one"
elif [ "$(soname "$old")" != "$(soname "$new")" ]; then
  echo "the ABI breaks, and the soname says so"
else
  echo "the ABI breaks under one soname: raise the minor version"
  exit 1
fi
