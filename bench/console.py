#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A console log as a job of many processes writes it.

	console.py make FILE BYTES EVERY    write one in which every EVERY-th line is one of Megatron's, the others
	                                    chatter of the kinds that fill such logs
	console.py time FILE                how fast a loop over its lines with a compiled expression reads the losses,
	                                    in MB/s of processor time, and how many there are
"""
import random
import re
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


def make(path, size, every):
	rng = random.Random(1)
	written, line, step = 0, 0, 0
	with open(path, "w") as f:
		while written < size:
			line += 1
			if line % every == 0:
				step += 1
				text = (f" iteration {step:8d}/ 3125000 | consumed samples: {step * 96:12d} | elapsed time per iteration "
					f"(ms): {rng.random() * 9000:.1f} | learning rate: 4.438E-07 | global batch size:    96 | lm loss: "
					f"{2 + rng.random():.6E} | loss scale: 4096.0 | grad norm: {rng.random():.3f} | number of skipped "
					"iterations:   0 | number of nan iterations:   0 |\n")
			else:
				text = rng.choice(CHATTER).format(a=rng.random() * 1000, b=rng.random() * 100, n=rng.randrange(64),
					m=rng.randrange(100000), k=rng.randrange(8))
			f.write(text)
			written += len(text)


def losses(path):
	row = re.compile(r"iteration\s+(\d+)/\s*\d+ \|.*lm loss: ([0-9.E+-]+)")
	found = []
	with open(path) as f:
		for line in f:
			match = row.search(line)
			if match:
				found.append((int(match[1]), float(match[2])))
	return found


def main():
	if sys.argv[1] == "make":
		make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
		return
	start = time.process_time()
	count = len(losses(sys.argv[2]))
	taken = time.process_time() - start
	with open(sys.argv[2], "rb") as f:
		size = f.seek(0, 2)
	print(f"{size / taken / 1e6:.1f} {count}")


main()
