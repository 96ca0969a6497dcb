#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# fuzz.sh [SECONDS [FOLDER [SEED]]]: builds the fuzz targets with clang and runs each of them for so many seconds
# (default: 60). In FOLDER (default: build/fuzz) are the build, the inputs found on the way, and those that break
# something, which are printed. SEED (default: another one each time) chooses the inputs, from the seeds alone. Exit
# status 77 without clang or its libFuzzer.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:-60}
folder=${2:-$source/build/fuzz}
seed=${3:-0}

compiler=$(command -v clang++-16 || command -v clang++) || { echo "skipped: no clang++ found"; exit 77; }
mkdir -p "$folder"
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$folder/probe.cpp"
"$compiler" -fsanitize=fuzzer,address,undefined "$folder/probe.cpp" -o "$folder/probe" 2>"$folder/probe.log" ||
  { echo "skipped: $compiler has no libFuzzer (Debian: libclang-rt-16-dev)"; exit 77; }

cmake -S "$source" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER="$compiler" \
  -DHOLDFAST_FUZZ=ON -DHOLDFAST_BUILD_EXAMPLES=OFF -DHOLDFAST_BUILD_BENCH=OFF >"$folder/configure.log"
cmake --build "$folder" --target holdfast_fuzzers >"$folder/build.log" || { cat "$folder/build.log"; exit 1; }

for seeds in "$source"/tests/fuzz/corpus/*; do
  name=$(basename "$seeds")
  words=$source/tests/fuzz/resp.dict
  [ "$name" != url ] || words=$source/tests/fuzz/url.dict
  [ "$seed" = 0 ] || rm -rf "$folder/corpus/$name"
  mkdir -p "$folder/corpus/$name" "$folder/found"
  echo "$name:"
  # A single allocation of more than 8 MiB is a finding: the reader accepts one.
  "$folder/tests/fuzz/holdfast_${name}_fuzz" -seed="$seed" -max_total_time="$seconds" -max_len=4096 -timeout=5 -malloc_limit_mb=8 \
    -rss_limit_mb=512 -dict="$words" -artifact_prefix="$folder/found/" -print_final_stats=1 -verbosity=0 \
    "$folder/corpus/$name" "$seeds" 2>&1 | tee "$folder/$name.log" | grep -a -E 'violated|ERROR|SUMMARY|Base64|number_of_exec|peak_rss' || true
  ! grep -a -q 'SUMMARY' "$folder/$name.log" || exit 1
  grep -a -q 'number_of_executed_units' "$folder/$name.log"
done
