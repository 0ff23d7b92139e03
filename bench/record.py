# SPDX-License-Identifier: MIT
"""What a step costs a training loop in Python: recorder.step() alone, and, where there is PyTorch, a watched loader
against one that is not. record.py FOLDER"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bindings/python"))
import reprise  # noqa: E402

STEPS, STEP = 2000, 0.1


def told(what, times):
    times.sort()
    middle = times[len(times) // 2]
    print(f"  {what:46} {middle * 1e6:6.1f} us a step, {middle / STEP * 100:.3f} % of a step of 100 ms")


def calls(folder, what, batches):
    recorder, times = reprise.Recorder(folder, from_step=0), []
    for step, ids in enumerate(batches, 1):
        start = time.perf_counter()
        recorder.step(step, ids)
        times.append(time.perf_counter() - start)
    summary = recorder.close()
    assert summary["steps"] == len(batches) and not summary["failed_calls"], summary
    os.unlink(summary["path"])
    told(what, times)


def loaders(folder):
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(64 * STEPS))
    times = {}
    for watched in (False, True, False, True):
        loader = DataLoader(data, batch_size=64, shuffle=True)
        recorder = reprise.Recorder(folder, from_step=0)
        if watched:
            recorder.watch(loader)
        step, each = 0, []
        start = time.perf_counter()
        for _ in loader:
            step += 1
            if watched:
                recorder.step(step)
            each.append(time.perf_counter() - start)
            start = time.perf_counter()
        recorder.close()
        each.sort()
        times[watched] = min(each[len(each) // 2], times.get(watched, 1))
    told("a watched DataLoader, batches of 64, on top of", [times[True] - times[False]])


calls(sys.argv[1], "Recorder.step, 1024 ids in a list", [list(range(k, k + 1024)) for k in range(STEPS)])
try:
    import numpy
except ImportError:
    pass
else:
    calls(sys.argv[1], "Recorder.step, 1024 ids in a NumPy array", [numpy.arange(k, k + 1024) for k in range(STEPS)])
try:
    loaders(sys.argv[1])
except ImportError:
    print("  without PyTorch no loader was watched: PYTHON names an interpreter that has it")
