#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hold the report on every fixture against what its `expect` file says. A line is
#   COMMAND [ARGUMENT…] : must CODE… ; mustnot CODE… ; mustnot-any SEVERITY… ; word WORD ; exit STATUS ;
#                         steps CODE A-B ; says CODE NUMBER
# where `must A|B` wants one of the two. Paths are relative to the fixture's folder; fixtures/README.md has the clauses.
set -u
unset VIRTUAL_ENV CONDA_PREFIX
reprise=$(realpath "${1:?usage: fixtures.sh REPRISE [FIXTURE…]}")
shift
here=$(cd "$(dirname "$0")/.." && pwd)
passed=0 failed=0
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT

fail() {
	echo "FAIL $fixture: $command: $1"
	ok=no
}

# has CODE: whether the report has that finding.
has() {
	case $report in *"\"code\": \"$1\""*) return 0 ;; esac
	return 1
}

check_clause() {
	local word=$1 code any alternative
	shift
	case $word in
	must)
		for any; do
			for alternative in ${any//|/ }; do has "$alternative" && continue 2; done
			fail "wants $any"
		done
		;;
	mustnot)
		for code; do has "$code" && fail "must not have $code"; done
		;;
	mustnot-any)
		for code; do
			case $report in *"\"severity\": \"$code\""*) fail "must not have any $code" ;; esac
		done
		;;
	word)
		for any in ${1//|/ }; do
			case $report in *"\"word\": \"$any\""* | *"\"word\": \"WOULD-$any\""*) return ;; esac
		done
		fail "wants the word $1"
		;;
	exit)
		[ "$status" = "$1" ] || fail "wants exit $1, got $status"
		;;
	steps | says)
		python3 "$here/tests/stated.py" "$word" "$1" "${*:2}" <<<"$report" || fail "wants $word $*"
		;;
	*) fail "the expectation has no clause '$word'" ;;
	esac
}

if [ $# -eq 0 ]; then
	mapfile -t expects < <(find "$here/fixtures" -name expect | sort)
else
	expects=("${@/%//expect}")
fi
for expect in "${expects[@]}"; do
	folder=$(dirname "$expect")
	fixture=${folder#"$here"/fixtures/}
	# Git keeps no times: a fixture that needs an order of saving lists its paths, oldest first.
	if [ -f "$folder/mtimes" ]; then
		minute=0
		while read -r _ path; do
			[ -n "$path" ] && [ "${path#\#}" = "$path" ] || continue
			minute=$((minute + 10))
			find "$folder/$path" -exec touch -d "2026-01-01 00:00:00 UTC + $minute minutes" {} +
		done <"$folder/mtimes"
	fi
	while IFS= read -r line; do
		[ -n "$line" ] && [ "${line#\#}" = "$line" ] || continue
		command=${line%% : *}
		ok=yes
		read -r -a words <<<"$command"
		settle=(--settle 0)
		[ "${words[0]}" = verify ] || settle=()
		report=$(cd "$folder" && "$reprise" "${words[@]}" "${settle[@]}" --format json 2>/dev/null)
		status=$?
		printf '%s\n' "$report" >"$reports/$((passed + failed)).json"
		[ "$status" -le 5 ] || fail "exit status $status"
		IFS=';' read -r -a clauses <<<"${line#* : }"
		for clause in "${clauses[@]}"; do
			read -r -a words <<<"$clause"
			check_clause "${words[@]}"
		done
		if [ $ok = yes ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	done <"$expect"
done
# Every report that was made is what the schema says.
if ! python3 "$here/tests/validate.py" "$here/share/reprise-1.schema.json" "$reports"; then
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
