#!/bin/sh
# SPDX-License-Identifier: MIT
# Measure and print ratios: bench/run.sh BUILD [PART]... where BUILD is build/release and the parts are the
# functions below.
set -eu

build=$1
shift
top=$(dirname "$0")
mkdir -p "$build/bench"

# How much faster a pickle is decoded here than by Python's own pickle.loads.
pickle() {
	data=$build/bench/metadata.pickle
	[ -s "$data" ] || python3 "$top/pickle_loads.py" make "$data"
	ours=$("$build/bench/pickle" "$data")
	theirs=$(python3 "$top/pickle_loads.py" time "$data")
	echo "$ours $theirs" | awk '{
		printf "pickle          %8.1f MB/s, pickle.loads %6.1f MB/s: %5.1f times\n", $1, $2, $1 / $2
		printf "                     without garbage collection %6.1f MB/s: %5.1f times\n", $3, $1 / $3
	}'
}

# How fast the words of MT19937 are walked when two states are compared.
rng() {
	"$build/bench/rng"
}

# Sample logs: text on one core, and the size of sealed ones.
ledger() {
	REPRISE_H5=$(realpath "$build/reprise-h5") "$build/bench/ledger" "$build/bench"
}

# The recorder: what a step costs the trainer, in C and in Python, what a sample takes on disk, and how fast journals
# are read and sealed. RECORD_SAMPLES=100000000 seals as many.
record() {
	REPRISE_H5=$(realpath "$build/reprise-h5") "$build/bench/record" "$build/bench" ${RECORD_SAMPLES:-}
	REPRISE_RECORD_LIBRARY=$(realpath "$build/libreprise-record.so") "${PYTHON:-python3}" "$top/record.py" "$build/bench"
}

# Console logs, of chatter with a row in 100 lines and of nothing but rows of a trainer: against a loop with a
# compiled expression in Python, which must find the same number of losses, and against `grep -c`.
console() {
	for kind in sparse megatron trainer torchtitan nanogpt; do
		data=$build/bench/console-$kind.log
		[ -s "$data" ] || python3 "$top/console.py" make "$data" 100000000 "$kind"
		ours=$("$build/bench/console" "$data")
		theirs=$(LC_ALL=C python3 "$top/console.py" time "$data" "$kind")
		echo "$kind $ours $theirs" | awk '{
			if ($3 != $7) { print "console: " $3 " and " $7 " losses"; exit 1 }
			printf "console log     %8.1f MB/s, Python %6.1f MB/s: %5.1f times; grep -c %.0f MB/s: %4.2f times (%s)\n",
				$2, $5, $2 / $5, $6, $2 / $6, $1
		}'
	done
}

# TensorBoard's event files against its own loaders. PYTHON needs tensorboard.
events() {
	data=$build/bench/events.out.tfevents.1700000000.bench
	[ -s "$data" ] || "${PYTHON:-python3}" "$top/events.py" make "$data" 400000
	ours=$("$build/bench/console" "$data")
	theirs=$("${PYTHON:-python3}" "$top/events.py" time "$data")
	echo "$ours $theirs" | awk '{
		if ($2 != $6) { print "events: " $2 " and " $6 " losses"; exit 1 }
		printf "event file      %8.1f MB/s, EventAccumulator %5.2f MB/s: %6.1f times\n", $1, $4, $1 / $4
		printf "                     EventFileLoader alone %5.2f MB/s: %6.1f times\n", $5, $1 / $5
	}'
}

# Loss logs of 10^8 lines: time and peak memory, of which the points are 40 bytes each up to the limit.
lines() {
	data=$build/bench/lines.csv
	[ -s "$data" ] || awk 'BEGIN {
		print "step,loss,lr"
		for (i = 1; i <= 100000000; i++) printf "%d,%.4f,0.0001\n", i, 2 + 6 / i
	}' > "$data"
	"$build/bench/console" "$data" 1 | awk '{
		printf "table           %8.1f MB/s, %d lines of a loss, %.0f MB at most\n", $1, $2, $3
	}'
}

# A torch file of 4 GB: show, ls, get and verify --quick against opening it with torch (memory-mapped,
# weights only), and verify with the bytes against reading them with cat. PYTHON names an interpreter that
# has torch; without it the file cannot be made.
open() {
	data=$build/bench/4gb.pt
	"${PYTHON:-python3}" "$top/torch_open.py" "$data" "$build/reprise"
}

# One pass over 4 GB: checksums, hashes and statistics against xxh128sum (Debian: xxhash) and against torch.load
# with hashing in Python; peak memory.
bytes() {
	"${PYTHON:-python3}" "$top/bytes.py" "$build/reprise"
}

# A checkpoint of 10 000 files.
shards() {
	python3 "$top/bytes.py" "$build/reprise" shards
}

# The whole audit of sample logs against finding their duplicates alone. PYTHON needs numpy and duckdb.
audit() {
	"${PYTHON:-python3}" "$top/audit.py" "$build/reprise" ${AUDIT_ROWS:-}
}

[ $# -gt 0 ] || set -- pickle rng ledger record console events open bytes shards audit
for part; do
	"$part"
done
