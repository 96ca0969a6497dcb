#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
set -eu

if [ $# -gt 1 ] || [ "${1:-}" = --help ]; then
  cat >&2 <<'END'
sh cmake/site.sh [OUT]  build the site: guides, reference, one search. Open OUT/index.html (build/site/index.html)
Needs python3 with venv, doxygen, and PyPI for MkDocs Material, which is kept in OUT.work.
Exit status 77 if one of these is not to be had.
END
  exit 64
fi
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/build/site}
mkdir -p "$out.work"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
work=$out.work
site=$root/docs/site

lacks() {
  echo "skipped: $1"
  exit 77
}

command -v python3 >/dev/null || lacks "no python3"
command -v doxygen >/dev/null || lacks "no doxygen: apt-get install doxygen"

# MkDocs, as it is named in requirements.txt.
if ! cmp -s "$site/requirements.txt" "$work/requirements.txt"; then
  rm -rf "$work/venv"
  python3 -m venv "$work/venv" >"$work/venv.log" 2>&1 || lacks "no venv: apt-get install python3-venv"
  "$work/venv/bin/pip" install -q --retries 1 --disable-pip-version-check -r "$site/requirements.txt" >>"$work/venv.log" 2>&1 ||
    lacks "MkDocs Material cannot be installed: $work/venv.log"
  cp "$site/requirements.txt" "$work/requirements.txt"
fi

rm -rf "$work/pages" "$work/doxygen" "$out"
mkdir -p "$work/pages" "$work/doxygen"
{
  sed "s#@PROJECT_SOURCE_DIR@#$root#g; s#@PROJECT_BINARY_DIR@#$work#g; s#@PROJECT_[A-Z]*@##g" "$root/docs/Doxyfile.in"
  cat <<END
INPUT = $root/include $root/src/otel/include
STRIP_FROM_PATH = $root/include $root/src/otel/include
STRIP_FROM_INC_PATH = $root/include $root/src/otel/include
OUTPUT_DIRECTORY = $work/doxygen
GENERATE_HTML = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
END
} >"$work/Doxyfile"
doxygen "$work/Doxyfile"
python3 "$site/reference.py" "$work/doxygen/xml" "$work/pages/reference"
python3 "$site/pages.py" "$work/pages"
cp "$site/site.css" "$site/favicon.svg" "$site/iframe-worker.js" "$work/pages/"
# Not --quiet: with it, --strict counts no warnings.
HOLDFAST_SITE_PAGES="$work/pages" NO_MKDOCS_2_WARNING=1 \
  "$work/venv/bin/mkdocs" build --strict --config-file "$site/mkdocs.yml" --site-dir "$out" >"$work/mkdocs.log" 2>&1 || {
  cat "$work/mkdocs.log"
  exit 1
}
echo "$out/index.html"
