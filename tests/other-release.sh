#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Run the README's second command, and the check of the portable tool, on the other of the two Debian releases,
# bookworm or trixie, in a chroot: a fresh one for each run, copied from one that debootstrap made and that is kept in the cache folder. Needs root. What
# cannot be run is a failure, with the reason: a release that nobody tried is not supported.
#
#   DEBIAN_MIRROR   where packages come from (http://deb.debian.org/debian)
#   XDG_CACHE_HOME  where the chroot is kept between runs (~/.cache)
set -euo pipefail
cd "$(dirname "$0")/.."

give_up() {
	echo "the other Debian release was not tried: $*" >&2
	exit 1
}

if [ "$(id -u)" -ne 0 ]; then
	sudo -n true 2>/dev/null || give_up "a chroot needs root"
	exec sudo -n --preserve-env=DEBIAN_MIRROR,XDG_CACHE_HOME,http_proxy,https_proxy,no_proxy,MAKEFLAGS "$PWD/tests/other-release.sh"
fi
case $(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release) in
bookworm) other=trixie ;;
trixie) other=bookworm ;;
*) give_up "this is neither bookworm nor trixie" ;;
esac
command=$(sed -n 's/^    \(make deps check\) .*/\1/p' README.md)
[ -n "$command" ] || give_up "the README has no second command"
export DEBIAN_FRONTEND=noninteractive
if ! command -v debootstrap >/dev/null; then
	apt-get update -qq || :
	apt-get install -y -qq --no-install-recommends debootstrap >/dev/null ||
		give_up "debootstrap is missing and could not be installed"
fi

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/reprise
base=$cache/debian-$other
work=$(mktemp -d)
# Nothing is mounted in this namespace, see below.
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' HUP INT TERM

# A chroot that is not whole has another name.
if [ ! -d "$base" ]; then
	echo "making a chroot of $other in $cache"
	mkdir -p "$cache"
	rm -rf --one-file-system "$base.new"
	debootstrap --variant=minbase "$other" "$base.new" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$work/log" 2>&1 || {
		tail -n 20 "$work/log" >&2
		give_up "debootstrap failed"
	}
	mv "$base.new" "$base"
fi

root=$work/root
cp -a --reflink=auto "$base" "$root"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || :
# How this machine reaches packages, through a proxy or not, holds there too.
cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
[ ! -e /etc/apt/apt.conf ] || cp -a /etc/apt/apt.conf "$root/etc/apt/"
# What is committed or about to be, as a clone would have it: no build folder, no forgotten file.
mkdir "$root/srv/reprise"
git -c safe.directory="$PWD" ls-files -z | tar -c --null -T - | tar -x -C "$root/srv/reprise"

# Mounts are made in a namespace of their own, and processes run in one: both end with it, whatever happens.
# shellcheck disable=SC2016
unshare --mount --pid --fork --kill-child --propagation private bash -euc '
	# A mount of its own, so that the check of the portable tool can make a namespace in it.
	mount --bind "$1" "$1"
	mount -t proc proc "$1/proc"
	mount --rbind /dev "$1/dev"
	exec chroot "$1" /bin/sh -euc "
		apt-get update -qq
		apt-get install -y -qq --no-install-recommends make >/dev/null
		cd /srv/reprise
		. /etc/os-release
		echo \"on \$PRETTY_NAME: $2\"
		$2
		make check-portable
	"
' bash "$root" "$command"
