#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The portable tool needs nothing but itself and an old kernel: in a folder that holds it, /dev/null and checkpoints,
# as a user without rights, with an empty environment, without /proc and with the system calls of Linux 4.18 alone,
# it says byte for byte what the tool says that is built for this machine.
set -euo pipefail
usage="usage: check.sh COMPILER PORTABLE REPRISE"
compiler=${1:?$usage} portable=${2:?$usage} reprise=$(realpath "${3:?$usage}")
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

if readelf -lW "$portable" | grep -q INTERP || readelf -dW "$portable" | grep -q NEEDED; then
	echo "$portable needs other files" >&2
	exit 1
fi
chmod 755 "$root"
cp "$portable"* "$root"
$compiler -O1 -Wall -Wextra -Werror -static -o "$root/old_kernel" tests/portable/old_kernel.c
mkdir "$root/dev" "$root/runs"
touch "$root/dev/null"
mount --bind /dev/null "$root/dev/null"
cp -r fixtures/transformers-5.24.0/optimizer-lost/out "$root/runs/trainer"
cp -r fixtures/pytorch-2.13.0/world2-right/checkpoints "$root/runs/ranks"
cp -r fixtures/lightning-2.6.6/stateful/out "$root/runs/lightning"
find "$root/runs" -exec touch -h -d 2026-01-01 {} +
chmod -R a+rX "$root/runs"

count=0
compare() {
	local wanted=0 came=0
	(cd "$root" && env -i "$reprise" "$@" >"$root/wanted" 2>&1) || wanted=$?
	env -i "$(command -v chroot)" ${REPRISE_PORTABLE_USER:+"$REPRISE_PORTABLE_USER"} "$root" /old_kernel /reprise "$@" >"$root/came" 2>&1 || came=$?
	if [ "$wanted" != "$came" ] || ! diff -u "$root/wanted" "$root/came"; then
		echo "reprise $*: exit status $wanted here, $came there" >&2
		exit 1
	fi
	count=$((count + 1))
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
echo "$count commands say the same without libraries, /proc, rights and later system calls"
