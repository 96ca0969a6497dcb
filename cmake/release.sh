#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# A release, up to the push, which is the owner's.
set -eu

usage() {
  cat <<'END_OF_USAGE'
sh cmake/release.sh [--twice] [--tag] [OUT]
Checks what a release promises, and makes its files in the folder OUT (build/release): source archive, TGZ, DEBs, bill of materials, hashes
and release notes. Says at the end what is still open. Nothing is pushed.
  --twice  builds the files twice, and compares their hashes
  --tag    makes the tag vVERSION, if nothing is open
HOLDFAST_REPOSITORY and HOLDFAST_MAINTAINER, if they are set, stand in the packages.
END_OF_USAGE
}

twice=
tag=
while [ $# -gt 0 ]; do
  case $1 in
    --twice) twice=yes ;;
    --tag) tag=yes ;;
    --help) usage; exit 0 ;;
    -*) usage >&2; exit 64 ;;
    *) break ;;
  esac
  shift
done
[ $# -le 1 ] || { usage >&2; exit 64; }
cd "$(dirname "$0")/.."
out=${1:-build/release}

fail() {
  echo "no release: $1" >&2
  exit 1
}

open=
leave_open() {
  open="$open
  - $1"
}

step() { echo "--- $1"; }

step "the tree"
[ -z "$(git status --porcelain)" ] || fail "the tree has changes that no commit has: git status"
git log -1 --format='%h %s'

step "the version"
version=$(python3 tests/packaging/check_versions.py) || fail "$version"
echo "$version"
tagged=$(git rev-parse --verify --quiet "v$version^{commit}") || tagged=
[ -z "$tagged" ] || [ "$tagged" = "$(git rev-parse HEAD)" ] || fail "another commit is v$version"

step "the licences"
python3 tests/format/check_licences.py names || fail "a file names no licence"

step "the documents"
python3 tests/docs/check_docs.py || fail "the documents do not agree with the tree"

rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)

step "the notes"
section() { awk -v head="## [$version] - " 'index($0, head) == 1 { inside = 1; next } /^## / { inside = 0 } inside' CHANGELOG.md; }
section | grep -q '^- ' || fail "CHANGELOG.md has no section of $version"
address=${HOLDFAST_REPOSITORY:-}
links=${address:+"s#](\([^):]*\))#]($address/blob/v$version/\1)#g"}
section | sed -e "$links" >"$out/NOTES.md"
wc -l "$out/NOTES.md"
case $(sed -n "s/^## \[$version\] - //p" CHANGELOG.md) in
  20[0-9][0-9]-[01][0-9]-[0-3][0-9]) ;;
  *) leave_open "CHANGELOG.md has no date for $version" ;;
esac
! grep -q '@HOLDFAST_SECURITY_CONTACT@' SECURITY.md || leave_open "SECURITY.md has no address for reports"
[ -n "$address" ] || leave_open "HOLDFAST_REPOSITORY is not set: the packages do not say where the sources are"
[ -n "${HOLDFAST_MAINTAINER:-}" ] || leave_open "HOLDFAST_MAINTAINER is not set: the packages have an address that does not exist"

step "the files"
sh cmake/packaging/build.sh "$out" >"$out.log" 2>&1 || {
  tail -n 20 "$out.log" >&2
  fail "the files cannot be built: $out.log"
}
cat "$out/SHA256SUMS"
if [ -n "$twice" ]; then
  step "the files, once more"
  again=$(mktemp -d)
  trap 'rm -rf "$again"' EXIT
  sh cmake/packaging/build.sh "$again" >>"$out.log" 2>&1 || fail "the second build failed: $out.log"
  diff "$out/SHA256SUMS" "$again/SHA256SUMS" || fail "two builds differ"
  echo "the same hashes"
fi

step "the symbols"
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked" "${again:-$unpacked}"' EXIT
tar -xzf "$out"/holdfast-"$version"-*.tar.gz -C "$unpacked"
library=$(find "$unpacked" -name "libholdfast.so.$version")
python3 tests/packaging/public_symbols.py check "$library" || fail "the public symbols are not those that are listed"

if [ -n "$open" ]; then
  echo "--- still open:$open"
  [ -z "$tag$tagged" ] || fail "a tag waits for what is open"
else
  echo "--- nothing is open"
fi
if [ -n "$tag" ] && [ -z "$tagged" ]; then
  git tag -a "v$version" -F "$out/NOTES.md"
  echo "--- tag v$version. To publish: git push origin v$version"
fi
echo "$out"
