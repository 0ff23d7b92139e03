#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Run the fault injection on copies of fixtures: fault.sh FAULT REPRISE [COMMAND]
set -euo pipefail
fault=$(realpath "${1:?usage: fault.sh FAULT REPRISE [COMMAND]}")
reprise=$(realpath "${2:?usage: fault.sh FAULT REPRISE [COMMAND]}")
# What takes memory, files or processes in another way would be left out without a word.
if nm -u "${fault%/*}/fault.a" | awk '{ print $2 }' | sort -u | grep -Ex \
	'v?asprintf|getline|getdelim|open_memstream|f(d|re)?open|opendir|scandir|mkdirat|memfd_create|dup[23]?|v?fork|pipe2?|aligned_alloc|posix_memalign|mmap|read|preadv|recvmsg|sendmsg|mkstemp|tmpfile|popen|system'
then
	echo 'FAIL: these are not in tests/fault/faults.syms'
	exit 1
fi
fixtures=$(cd "$(dirname "$0")/../fixtures" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work"/{right,wrong,replay,ranks,losses}
cp "$fixtures"/pytorch-2.13.0/right-resume/checkpoints/step_000[12]0.pt "$work/right/"
cp -r "$fixtures"/transformers-5.24.0/optimizer-lost/out/. "$work/wrong/"
cp "$fixtures"/ledger/random-from-top/*.jsonl "$work/replay/"
cp "$fixtures"/ledger/distributed-rank-files/*.jsonl "$work/ranks/"
printf '\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R.' >"$work/hostile.pkl"
for step in 1 2 3 4 3 4 5; do echo "{\"step\":$step,\"loss\":$((30 - step)).5}"; done >"$work/loss.jsonl"
for step in 1 2 3 4; do echo "{\"step\":$step,\"loss\":$((30 - step)).5}"; done >"$work/losses/1.jsonl"
for step in 5 6 7 8; do echo "{\"step\":$step,\"loss\":NaN}"; done >"$work/losses/2.jsonl"
find "$work" -exec touch -d '2026-01-01 00:00:00 UTC' {} +
"$reprise" snapshot "$work/right/step_00020.pt" -o "$work/kept.rps" >"$work/log" || { cat "$work/log"; exit 1; }
"$reprise" ledger import "$work/replay" -o "$work/sealed.rpl" >"$work/log" || { cat "$work/log"; exit 1; }
"$fault" "$work" ${3:+"$3"}
