#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A console log as a job of many processes writes it.

	console.py make FILE BYTES KIND     write one: "sparse", in which every 100th line is one of Megatron's and the others
	                                    are chatter of the kinds that fill such logs, or of nothing but rows of a trainer
	console.py time FILE KIND           how fast a loop over its lines with a compiled expression reads the losses, and
	                                    how fast `grep -c` counts its rows, in MB/s of processor time, and how many losses
	                                    there are
"""
import random
import re
import resource
import subprocess
import sys
import time

CHATTER = (
	"time (ms) | forward-compute: {a:.2f} | forward-recv: {b:.2f} | backward-compute: {a:.2f} | "
	"backward-send: 0.37 | backward-params-all-reduce: {b:.2f} | optimizer: {a:.2f} | batch-generator: 5.14\n",
	"r{n:02d}i4n{n}:{m}:{m} [{k}] NCCL INFO Channel 00/0 : {k}[{m}] -> {n}[{m}] [send] via NET/IB/0/GDRDMA\n",
	"[Rank {n}] (after 1 iterations) memory (MB) | allocated: {a:.4f} | max allocated: {b:.4f} | reserved: {m}\n",
	"/opt/conda/lib/python3.10/site-packages/torch/utils/checkpoint.py:{m}: UserWarning: use_reentrant should be "
	"passed explicitly, the default will change in a later version of this library.\n",
	"[2024-04-04 09:{k:02d}:{n:02d},613] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | optimizer_allgather: "
	"{a:.2f} | optimizer_gradients: {b:.2f} | optimizer_step: 23.60\n",
	"building GPT model ...  > number of parameters on (tensor, pipeline) model parallel rank ({k}, {n}): {m}\n",
	"  File \"/opt/megatron/schedules.py\", line {m}, in forward_step\n    output_tensor = forward_step_func(x)\n",
	"srun: Step created for StepId={m}.{k} on nodes node[{n}-{m}], waiting for the tasks of the step to start\n")


def megatron(step, rng):
	return (f" iteration {step:8d}/ 3125000 | consumed samples: {step * 96:12d} | elapsed time per iteration "
		f"(ms): {rng.random() * 9000:.1f} | learning rate: 4.438E-07 | global batch size:    96 | lm loss: "
		f"{2 + rng.random():.6E} | loss scale: 4096.0 | grad norm: {rng.random():.3f} | number of skipped "
		"iterations:   0 | number of nan iterations:   0 |\n")


def trainer(step, rng):
	return str({"loss": round(2 + rng.random(), 4), "grad_norm": 3 * rng.random(), "learning_rate": 1e-4 * rng.random(),
		"epoch": round(step / 100, 2)}) + "\n"


def torchtitan(step, rng):
	return (f"[rank0]:[titan] 2025-06-01 10:{step // 60 % 60:02d}:{step % 60:02d},{step % 1000:03d} - root - INFO - "
		f"\x1b[31mstep: {step:2d}  \x1b[32mloss: {2 + rng.random():8.5f}  \x1b[38;2;180;60;0mgrad_norm: {rng.random():7.4f}  "
		f"\x1b[38;2;54;234;195mmemory: 12.30GiB(15.40%)  \x1b[34mtps: {rng.randrange(20000):,}  \x1b[36mtflops: 123.45  "
		"\x1b[35mmfu: 12.34%\x1b[39m\n")


def nanogpt(step, rng):
	return (f"iter {step}: loss {2 + rng.random():.4f}, time {100 + 50 * rng.random():.2f}ms, "
		f"mfu {30 + rng.random():.2f}%\n")


# The rows, an expression that finds x and the loss in them, and what grep counts.
KINDS = {
	"sparse": (megatron, r"iteration\s+(\d+)/\s*\d+ \|.*lm loss: ([0-9.E+-]+)", "lm loss: "),
	"megatron": (megatron, r"iteration\s+(\d+)/\s*\d+ \|.*lm loss: ([0-9.E+-]+)", "lm loss: "),
	"trainer": (trainer, r"'loss': ([0-9.e+-]+),.*'epoch': ([0-9.]+)", "'loss': "),
	"torchtitan": (torchtitan, r"step: +(\d+) .*?loss: +([0-9.]+)", "loss: "),
	"nanogpt": (nanogpt, r"^iter (\d+): loss ([0-9.]+)", ": loss "),
}


def make(path, size, kind):
	rng = random.Random(1)
	row = KINDS[kind][0]
	written, line, step = 0, 0, 0
	with open(path, "w") as f:
		while written < size:
			line += 1
			if kind != "sparse" or line % 100 == 0:
				step += 1
				text = row(step, rng)
			else:
				text = rng.choice(CHATTER).format(a=rng.random() * 1000, b=rng.random() * 100, n=rng.randrange(64),
					m=rng.randrange(100000), k=rng.randrange(8))
			f.write(text)
			written += len(text)


def losses(path, kind):
	row = re.compile(KINDS[kind][1])
	found = []
	with open(path) as f:
		for line in f:
			match = row.search(line)
			if match:
				found.append((float(match[1]), float(match[2])))
	return found


def count(path, kind):
	before = resource.getrusage(resource.RUSAGE_CHILDREN)
	# To /dev/null grep would stop at the first line.
	subprocess.run(["grep", "-c", KINDS[kind][2], path], stdout=subprocess.PIPE, check=True)
	after = resource.getrusage(resource.RUSAGE_CHILDREN)
	return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
	if sys.argv[1] == "make":
		make(sys.argv[2], int(sys.argv[3]), sys.argv[4])
		return
	start = time.process_time()
	found = len(losses(sys.argv[2], sys.argv[3]))
	taken = time.process_time() - start
	with open(sys.argv[2], "rb") as f:
		size = f.seek(0, 2)
	print(f"{size / taken / 1e6:.1f} {size / count(sys.argv[2], sys.argv[3]) / 1e6:.1f} {found}")


main()
