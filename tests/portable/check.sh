#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The portable tool needs nothing but itself, its helper and an old kernel: in a folder that holds them, /dev/null and
# checkpoints, as a user without rights, with an empty environment, without /proc and with the system calls of Linux
# 4.18 alone, it says byte for byte what the tool says that is built for this machine. Snapshots want /proc there, or
# a kernel that can close a range of descriptors (5.9).
set -euo pipefail
usage="usage: check.sh COMPILER PORTABLE HELPER REPRISE"
compiler=${1:?$usage} portable=${2:?$usage} helper=${3:?$usage} reprise=$(realpath "${4:?$usage}")
cd "$(dirname "$0")/../.."

if [ -z "${REPRISE_PORTABLE_ROOT-}" ]; then
	# A mount namespace of its own, which ends with this script; without root also a user namespace.
	work=$(mktemp -d)
	trap 'rm -rf --one-file-system "$work"' EXIT
	as=() user=--userspec=65534:65534
	[ "$(id -u)" -eq 0 ] || as=(--user --map-root-user) user=
	REPRISE_PORTABLE_ROOT=$work REPRISE_PORTABLE_USER=$user unshare "${as[@]}" --mount --propagation private "$0" "$@"
	exit
fi
root=$REPRISE_PORTABLE_ROOT

for file in "$portable" "$helper"; do
	if readelf -lW "$file" | grep -q INTERP || readelf -dW "$file" | grep -q NEEDED; then
		echo "$file needs other files" >&2
		exit 1
	fi
done
chmod 755 "$root"
cp "$portable" "$helper" "$root"
$compiler -O1 -Wall -Wextra -Werror -static -o "$root/old_kernel" tests/portable/old_kernel.c
mkdir "$root/dev" "$root/proc" "$root/runs" "$root/this" "$root/that"
chmod 777 "$root/that"
touch "$root/dev/null"
mount --bind /dev/null "$root/dev/null"
cp -r fixtures/transformers-5.24.0/optimizer-lost/out "$root/runs/trainer"
cp -r fixtures/pytorch-2.13.0/world2-right/checkpoints "$root/runs/ranks"
cp -r fixtures/lightning-2.6.6/stateful/out "$root/runs/lightning"
find "$root/runs" -exec touch -h -d 2026-01-01 {} +
chmod -R a+rX "$root/runs"

fail() {
	echo "reprise $*" >&2
	exit 1
}

# The command here and there, under $kernel. OUT stands for a folder of its own in each place.
count=0 kernel=/old_kernel
compare() {
	local wanted=0 came=0
	(cd "$root" && env -i "$reprise" "${@//OUT/this}" >"$root/wanted" 2>&1) || wanted=$?
	# shellcheck disable=SC2086
	env -i "$(command -v chroot)" ${REPRISE_PORTABLE_USER:+"$REPRISE_PORTABLE_USER"} "$root" $kernel /reprise \
		"${@//OUT/that}" >"$root/came" 2>&1 || came=$?
	sed -i 's|this/|that/|g' "$root/wanted"
	[ "$wanted" = "$came" ] || fail "$*: exit status $wanted here, $came there: $(cat "$root/came")"
	diff -u "$root/wanted" "$root/came" || fail "$*: see above"
	count=$((count + 1))
}

snapshots() {
	rm -f "$root/this/"* "$root/that/"*
	compare snapshot runs/ranks/step_00030 -o OUT/ranks.rps
	cmp "$root/this/ranks.rps" "$root/that/ranks.rps"
	compare show OUT/ranks.rps
	compare verify --format json --snapshot OUT/ranks.rps runs/ranks/step_00030
}

for run in trainer ranks lightning; do
	compare verify --format json "runs/$run"
	compare verify -v "runs/$run"
	compare verify --quick -q "runs/$run"
	compare gate "runs/$run"
	compare get "runs/$run" '**.step'
done
compare compare --format json runs/trainer/checkpoint-12 runs/trainer/checkpoint-16
compare show runs/ranks/step_00030
compare ls runs/ranks/step_00030
compare ls runs/nowhere
compare explain
compare --version
kernel=
snapshots
mount --rbind /proc "$root/proc"
kernel=/old_kernel
snapshots
echo "$count commands say the same without libraries, rights, /proc and later system calls"
