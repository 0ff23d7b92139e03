#!/usr/bin/env bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# SPDX-License-Identifier: MIT
# A job that gates before srun. Submit it with CKPT_ROOT set: sbatch --export=ALL,CKPT_ROOT=… slurm-resume.sh
#
# - The gate stands here, in the job script, where it runs once and on one node; not behind srun, where every task
#   would judge the same files, and not in a Prolog, where a status other than 0 drains the node.
# - As a job of its own between two others, `sbatch --dependency=afterok:GATE` starts the successor only after exit 0;
#   `afterany` would start it whatever the gate says.
# - After a kill in the middle of a save, the newest checkpoint may be broken for good. Frameworks that resume from the
#   highest number would pick it, so the gate fails until it is moved away. Where the job passes the path on, as below,
#   the broken one cannot be picked; then a policy file may say so: [severity] I108 = warning.

# pipefail: without it, `reprise gate … | tee gate.log` has tee's exit status, which is 0 whatever the gate says.
set -euo pipefail

: "${CKPT_ROOT:?the folder that holds the checkpoints}"
report=gate-${SLURM_JOB_ID:-0}.json

# Metadata takes seconds at any size; POLICY=full reads every byte, which a requeue every few hours may not want. In
# ten minutes that are not enough the gate is undecided: it passes what it has looked at, and nothing else.
gate() {
	reprise gate "$CKPT_ROOT" --max-seconds 600 --policy "${POLICY:-quick}" --print-path --report "$report"
}

resume=()
# The first launch is said, not guessed from a path that is not there: a wrong path would start from random weights.
if [ "${FIRST_LAUNCH:-no}" != yes ]; then
	status=0
	checkpoint=$(gate) || status=$?
	# 4: still being written, by a job that is not quite dead yet or a save that goes on in the background.
	for ((try = 0; status == 4 && try < 20; try++)); do
		sleep 30
		status=0
		checkpoint=$(gate) || status=$?
	done
	# Everything but 0 ends the job: 1 is a fault, 3 is undecided and no pass, 4 is still not ready, 5 is the gate's own.
	if [ "$status" -ne 0 ]; then
		echo "not resumed: gate exit status $status, see $report" >&2
		# A requeue would come to the same end, again and again, but for 4.
		if [ "$status" -eq 4 ] && [ -n "${SLURM_JOB_ID:-}" ]; then
			scontrol requeue "$SLURM_JOB_ID"
		fi
		exit "$status"
	fi
	# The path that was judged is the one to resume from: `last` or `auto` may pick another.
	resume=(--resume "$checkpoint")
fi

# exec: srun gets the signals of the job's end itself, and its status is the job's. The loss of a task ends the others.
exec srun --kill-on-bad-exit=1 torchrun --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node=8 \
	--rdzv-backend=c10d --rdzv-endpoint="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1):29500" \
	train.py "${resume[@]}"
