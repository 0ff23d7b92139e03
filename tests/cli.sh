#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Run the command line cases: tests/cli/<group>/<case>/ holds
#   cmd              what to run, in bash, in an empty folder of its own; $REPRISE is the tool, and
#                    `fixtures` links to the fixtures
#   exit             the exit status, where it is not 0
#   stdout, stderr   what must be written, where that is not nothing
#   stdout.contains, stderr.contains
#                    instead of these: lines of which each must occur somewhere in it
#   stdout.lacks     lines of which none may
#   not-root         run it as a user whom file modes bind
# With --update, exit, stdout and stderr are written as they came out; look at the diff.
set -u
usage="usage: cli.sh REPRISE [--update] [GROUP[/CASE]…]"
REPRISE=$(realpath "${1:?$usage}")
shift
here=$(cd "$(dirname "$0")" && pwd)
update=no passed=0 failed=0 skipped=0
if [ "${1-}" = --update ]; then
	update=yes
	shift
fi
export REPRISE
export LC_ALL=C
unset NO_COLOR COLUMNS VIRTUAL_ENV CONDA_PREFIX
work=$(mktemp -d)
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"

# Run the case's cmd in $work/box; its output in $work/stdout and $work/stderr, its status in $status.
run_case() {
	local as=()
	chmod -R u+rwx "$work/box" 2>/dev/null
	rm -rf "$work/box"
	mkdir "$work/box"
	ln -s "$here/../fixtures" "$work/box/fixtures"
	if [ -e "$case/not-root" ] && [ "$(id -u)" = 0 ]; then
		as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
		chmod 777 "$work/box"
		"${as[@]}" test -x "$REPRISE" 2>/dev/null || return 1
	fi
	(cd "$work/box" && "${as[@]}" timeout 60 bash "$case/cmd" </dev/null) >"$work/stdout" 2>"$work/stderr"
	status=$?
}

complain() {
	[ $ok = yes ] && echo "FAIL $name"
	ok=no
	[ $# -eq 0 ] || echo "  $*"
}

# The wanted text of a stream against what came; lists of lines take its place where there are some.
check_stream() {
	local stream=$1 line
	if [ -e "$case/$stream.lacks" ]; then
		while IFS= read -r line; do
			grep -qF -- "$line" "$work/$stream" && complain "$stream must lack: $line"
		done <"$case/$stream.lacks"
	fi
	if [ -e "$case/$stream.contains" ]; then
		while IFS= read -r line; do
			grep -qF -- "$line" "$work/$stream" && continue
			complain "$stream lacks: $line"
			sed 's/^/  | /' "$work/$stream" | head -20
		done <"$case/$stream.contains"
		return
	fi
	[ -e "$case/$stream.lacks" ] && [ ! -e "$case/$stream" ] && return
	local wanted=$case/$stream
	[ -e "$wanted" ] || wanted=/dev/null
	if ! cmp -s "$wanted" "$work/$stream"; then
		complain "$stream:"
		diff -u --label wanted --label came "$wanted" "$work/$stream" | sed 's/^/  /'
	fi
}

update_case() {
	local stream
	rm -f "$case/exit"
	[ "$status" = 0 ] || echo "$status" >"$case/exit"
	for stream in stdout stderr; do
		[ -e "$case/$stream.contains" ] && continue
		[ -e "$case/$stream.lacks" ] && [ ! -e "$case/$stream" ] && continue
		rm -f "$case/$stream"
		[ -s "$work/$stream" ] && cp "$work/$stream" "$case/$stream"
	done
}

# What is a document of the tool's, whole: it is kept, to be held against the schema.
keep_json() {
	[[ $(head -n 2 "$work/stdout" | tr -d '\n') == '{  "schema": "reprise/1",' && $(tail -n 1 "$work/stdout") == '}' ]] &&
		cp "$work/stdout" "$work/json/${name//\//_}.json"
	return 0
}

mkdir "$work/json"
[ $# -gt 0 ] || set -- .
while IFS= read -r cmd; do
	case=$(dirname "$cmd")
	name=${case#"$here"/cli/}
	ok=yes
	if ! run_case; then
		skipped=$((skipped + 1))
		continue
	fi
	if [ $update = yes ]; then
		update_case
		continue
	fi
	wanted=0
	[ -e "$case/exit" ] && wanted=$(<"$case/exit")
	[ "$status" = "$wanted" ] || complain "exit status $status, not $wanted"
	check_stream stdout
	check_stream stderr
	keep_json
	if [ $ok = yes ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done < <(cd "$here/cli" && find "$@" -name cmd | sed "s|^\./||; s|^|$here/cli/|" | sort)
if [ $update = no ]; then
	if ! python3 "$here/validate.py" "$here/../share/reprise-1.schema.json" "$work/json"; then
		failed=$((failed + 1))
	fi
	[ $skipped -eq 0 ] || echo "$skipped skipped: no user whom file modes bind can run the tool"
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ] && [ $passed -gt 0 ]
fi
