#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Resume from the newest checkpoint that passes the gate, on one machine:
#
#     CKPT_ROOT=runs/out examples/bash-resume.sh torchrun train.py
#
# The command is run with `--resume CHECKPOINT` behind it where there is something to resume from.
#
#   CKPT_ROOT   the folder that holds the checkpoints
#   POLICY      quick, full (default), strict or a policy file
#   TRIES       how often to ask again while a checkpoint is still being written (60)
#   WAIT        seconds between two tries (30)
#   REPRISE     the tool (reprise)

# pipefail: without it, `reprise gate … | tee gate.log` has tee's exit status, which is 0 whatever the gate says.
set -euo pipefail

: "${CKPT_ROOT:?the folder that holds the checkpoints}"
policy=${POLICY:-full} tries=${TRIES:-60} wait=${WAIT:-30} reprise=${REPRISE:-reprise}

# The first launch: no checkpoint is there, and nothing is to be judged. This is asked of the folder and not of the
# gate's exit status, so that a wrong path or an unreadable disk never looks like a first launch.
if [ ! -e "$CKPT_ROOT" ]; then
	if [ "${FIRST_LAUNCH:-no}" != yes ]; then
		echo "$CKPT_ROOT is not there; FIRST_LAUNCH=yes starts from nothing" >&2
		exit 2
	fi
	exec "$@"
fi

# --print-path puts the path alone on stdout and the one line, with everything else, on stderr.
# `local x=$(…)` and `export x=$(…)` would hide the status; a plain assignment keeps it, and `|| status=$?` keeps
# `set -e` from ending the script before it is looked at.
while :; do
	status=0
	checkpoint=$("$reprise" gate "$CKPT_ROOT" --policy "$policy" --print-path --report gate-report.json) || status=$?
	# 4: the newest checkpoint is still being written. Time heals that, so wait and ask again, but not for ever.
	if [ "$status" -ne 4 ] || [ "$tries" -le 1 ]; then
		break
	fi
	tries=$((tries - 1))
	sleep "$wait"
done

case $status in
0) ;;
1) echo "not resumed: something is wrong with the checkpoint, see gate-report.json" >&2 ;;
# 3 is no pass: something could not be read, or was required and not checked. `[ $status -ne 1 ]` would let it through.
3) echo "not resumed: whether the resume is right could not be decided" >&2 ;;
4) echo "not resumed: the checkpoint is still being written" >&2 ;;
*) echo "not resumed: the gate itself failed" >&2 ;;
esac
[ "$status" -eq 0 ] || exit "$status"

# The path that was judged is the one to resume from: `--resume last` or `auto` may pick another.
exec "$@" --resume "$checkpoint"
