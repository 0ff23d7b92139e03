#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time one pass over all bytes of a checkpoint against what one would run instead, and show the memory that it takes.

bytes.py REPRISE: torch files of 4 GB are made in a temporary folder (below $TMPDIR) and removed: float32 and bfloat16
weights for the pass with statistics, complex64 ones, of which there are none, for hashes and checksums alone; 1 GB to
compare the memory with. The commands take turns, the fastest of five counts. Where others use the machine the clock
says little: the ratio of processor seconds, which two threads share, stands beside it. bytes.py REPRISE shards: a checkpoint of
10 000 small safetensors files, `verify --quick` when they are cached.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 5
GB = 10**9
HASHED = ("import hashlib, sys, torch; h = hashlib.sha256()\n"
          "for t in torch.load(sys.argv[1], weights_only=True).values(): h.update(t.view(torch.uint8).numpy())\n"
          "print(h.hexdigest())")


def make(path, dtype, size):
    import torch

    base, state = torch.randn(4096, 4096) * 0.02, {}
    for i in range(size // (64 << 20)):
        t = base * (1 + i / 100)
        state[f"layers.{i}.weight"] = (
            t.view(-1, 2).view(torch.complex64) if dtype == "complex64" else
            torch.cat([t, t]).to(torch.bfloat16) if dtype == "bfloat16" else t)
    torch.save(state, path)


def run(command):
    """Seconds on the clock, and of processors."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def memory(command):
    """The largest resident set, in bytes: asked for while it runs, since wait4() counts the parent's as well."""
    child, most = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), 0
    while child.poll() is None:
        status = Path(f"/proc/{child.pid}/status").read_text().split()
        if "VmHWM:" in status:
            most = int(status[status.index("VmHWM:") + 1]) * 1024
        time.sleep(0.002)
    return most


def race(commands):
    """The fastest of each, all taking turns: (seconds, processor seconds)."""
    rounds = [[run(c) for c in commands] for _ in range(RUNS)]
    return [tuple(min(r[i][k] for r in rounds) for k in range(2)) for i in range(len(commands))]


def large(reprise, folder):
    path = folder / "4gb.pt"
    for dtype, what in (("complex64", "hash + CRC-32"), ("bfloat16", "with statistics"), ("float32", "with statistics")):
        try:
            make(path, dtype, 4 << 30)
        except ImportError:
            sys.exit("torch is not there: PYTHON=/path/to/venv/bin/python make bench")
        size = path.stat().st_size
        ours, theirs = race([[reprise, "verify", "-j2", path], ["xxh128sum", path]])
        print(f"verify -j2, {dtype:9} {what:15} {size / ours[0] / GB:5.1f} GB/s, xxh128sum {size / theirs[0] / GB:5.1f} GB/s: "
              f"{theirs[0] / ours[0]:5.2f} times; {ours[1]:.2f} s of two processors and {theirs[1]:.2f} s of one: "
              f"{2 * theirs[1] / ours[1]:.2f} times")
    python = run([sys.executable, "-c", HASHED, path])
    print(f"    torch.load and SHA-256 of the same {size / python[0] / GB:5.1f} GB/s: {python[0] / ours[0]:5.1f} times; "
          f"by processors {2 * python[1] / ours[1]:.1f} times")
    most = memory([reprise, "verify", "-j2", path])
    make(path, "float32", 1 << 30)
    print(f"    memory {memory([reprise, 'verify', '-j2', path]) / 1e6:.1f} MB for 1 GB, {most / 1e6:.1f} MB for 4 GB")


def shards(reprise, folder, count=10000):
    index = {}
    for i in range(count):
        name, header = f"model-{i + 1:05d}-of-{count:05d}.safetensors", {"__metadata__": {"format": "pt"}}
        for k, part in enumerate(("mlp.up", "mlp.down", "norm")):
            header[f"model.layers.{i}.{part}.weight"] = {"dtype": "F32", "shape": [16], "data_offsets": [64 * k, 64 * k + 64]}
            index[f"model.layers.{i}.{part}.weight"] = name
        text = json.dumps(header).encode()
        (folder / name).write_bytes(struct.pack("<Q", len(text)) + text + bytes(192))
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 192 * count}, "weight_map": index}))
    run([reprise, "verify", "--quick", folder])
    t, = race([[reprise, "verify", "--quick", folder]])
    print(f"verify --quick of {count} shard files, cached: {t[0] * 1e3:.0f} ms, {t[1] * 1e3:.0f} ms of processors")


with tempfile.TemporaryDirectory() as work:
    (shards if sys.argv[2:] == ["shards"] else large)(sys.argv[1], Path(work))
