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
	}'
}

[ $# -gt 0 ] || set -- pickle
for part; do
	"$part"
done
