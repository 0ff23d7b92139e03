#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time reprise on a large torch file against what one would run instead, in one go.

torch_open.py FILE REPRISE: FILE is made if it is not there (4 GB of float32 in 64 tensors, with an AdamW-like
state). Each command is run five times; the fastest counts. Interpreter start and `import torch` belong to what
a person waits for; torch.load alone, timed inside the interpreter, is shown beside them.
"""
import os
import subprocess
import sys
import time

RUNS = 5


def make(path):
    import torch

    state = {f"layers.{i}.weight": torch.full((4096, 4096), float(i)) for i in range(64)}
    steps = {i: {"step": torch.tensor(1500.0)} for i in range(64)}
    torch.save({"model": state, "step": 1500, "optimizer": {"state": steps, "param_groups": [
        {"lr": 1e-4, "betas": (0.9, 0.95), "params": list(range(64))}]},
        "rng": torch.get_rng_state()}, path)


def fastest(command):
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    path, reprise = sys.argv[1:3]
    if not os.path.exists(path):
        try:
            make(path)
        except ImportError:
            sys.exit("torch is not there: PYTHON=/path/to/venv/bin/python make bench")
    load = ("import time, torch; t = time.perf_counter(); torch.load(%r, mmap=True, weights_only=True); "
            "print(time.perf_counter() - t)") % path
    whole = fastest([sys.executable, "-c", load])
    bare = min(float(subprocess.check_output([sys.executable, "-c", load])) for _ in range(RUNS))
    size = os.path.getsize(path)
    print(f"python -c torch.load(mmap=True, weights_only=True): {whole * 1e3:.0f} ms, torch.load alone {bare * 1e3:.1f} ms")
    for arguments in (["show"], ["ls"], ["get", "**.step"], ["verify", "--quick"]):
        command = [reprise, arguments[0], *arguments[2:], path] if arguments[-1].startswith("--") else \
            [reprise, arguments[0], path, *arguments[1:]]
        if arguments[-1] == "--quick":
            command = [reprise, "verify", "--quick", path]
        t = fastest(command)
        print(f"reprise {' '.join(arguments):20} {t * 1e3:7.1f} ms: {whole / t:6.0f} times as fast, "
              f"{bare / t:5.1f} times torch.load alone")
    t, cat = fastest([reprise, "verify", path]), fastest(["cat", path])
    print(f"reprise verify, all bytes     {t * 1e3:7.0f} ms = {size / t / 1e9:.1f} GB/s; cat > /dev/null {size / cat / 1e9:.1f} GB/s")


main()
