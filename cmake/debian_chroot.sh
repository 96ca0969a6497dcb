#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# The README's test command on another release of Debian, from Debian's own packages.
set -eu

usage() {
  cat <<'END_OF_USAGE'
sh cmake/debian_chroot.sh SUITE [FOLDER [COMMAND...]]
Makes a chroot of a Debian release (bookworm, trixie, sid, ...) in FOLDER, by default /var/tmp/holdfast-SUITE, by debootstrap from the
mirror in this machine's apt sources, or from $MIRROR. Copies this checkout to FOLDER/holdfast and runs COMMAND there, by default
`sh cmake/quickstart.sh test`. A FOLDER that was made before is used again, the checkout in it is not. Needs root and debootstrap.
END_OF_USAGE
}

# The first Debian archive among apt's sources: neither its security archive nor another vendor's.
configured_mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1
}

[ $# -ge 1 ] || { usage >&2; exit 64; }
suite=$1
folder=${2:-/var/tmp/holdfast-$suite}
if [ $# -ge 2 ]; then shift 2; else shift; fi
[ $# -gt 0 ] || set -- sh cmake/quickstart.sh test
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

cd "$(dirname "$0")/.."
eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
export http_proxy="${http_proxy:-}"
if [ ! -x "$folder/usr/bin/apt-get" ] || [ -e "$folder/debootstrap" ]; then # the second: a debootstrap that was interrupted
  mirror=${MIRROR:-$(configured_mirror)}
  [ -n "$mirror" ] || { echo "No Debian archive in the apt sources of this machine: name one in MIRROR." >&2; exit 64; }
  debootstrap --variant=minbase "$suite" "$folder" "$mirror"
fi

# A mirror of sid may stand still, and its release file expire.
echo 'Acquire::Check-Valid-Until "false";' >"$folder/etc/apt/apt.conf.d/no-expiry"

rm -rf "$folder/holdfast"
mkdir "$folder/holdfast"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$folder/holdfast"

# In a mount namespace of its own, so nothing has to be unmounted: the mounts go with the last process in there,
# whatever ends it.
exec unshare --mount sh -c '
  set -eu
  folder=$1
  shift
  mount -t proc proc "$folder/proc"
  mount --rbind /dev "$folder/dev"
  exec chroot "$folder" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" http_proxy="$http_proxy" \
    sh -c "cd /holdfast && exec \"\$@\"" sh "$@"' sh "$folder" "$@"
