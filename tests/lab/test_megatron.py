# SPDX-License-Identifier: MIT
"""Megatron's way: four processes with megatron-core's own groups (tensor-parallel 2, data-parallel 2), a loader over a
batch sampler that begins at the samples consumed so far, and one recorder for each data-parallel rank.

MEGATRON_LM names a checkout of Megatron-LM: its MegatronPretrainingSampler deals the samples then. Without one a
sampler of the lab's own deals them alike: contiguous micro-batches, rank by rank.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

import journal

SAMPLES, MICRO, ACCUMULATION, RANKS, TENSOR = 128, 2, 2, 4, 2
GLOBAL = MICRO * ACCUMULATION * RANKS // TENSOR


class Consecutive:
    """Micro-batches of consecutive indices, dealt to the data-parallel ranks in turn."""

    def __init__(self, total, consumed, micro, rank, ranks):
        self.how = (total, consumed, micro, rank, ranks)

    def __iter__(self):
        total, consumed, micro, rank, ranks = self.how
        for at in range(consumed, total - micro * ranks + 1, micro * ranks):
            yield list(range(at + rank * micro, at + (rank + 1) * micro))


def sampler_class():
    """Megatron-LM's sampler; the module imports the training loop's arguments, which its samplers do not use."""
    if "MEGATRON_LM" not in os.environ:
        return Consecutive
    for name, member in (("megatron.training", "get_args"), ("megatron.training.dist_signal_handler", "DistributedSignalHandler")):
        sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[name], member, None)
    path = os.path.join(os.environ["MEGATRON_LM"], "megatron/training/datasets/data_samplers.py")
    spec = importlib.util.spec_from_file_location("data_samplers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MegatronPretrainingSampler


def train(folder, launch, iteration, consumed, last, on_all_ranks):
    """One process: iterations after `iteration`, from `consumed` samples on."""
    import torch
    import torch.distributed as dist
    from megatron.core import parallel_state
    from torch.utils.data import DataLoader

    import reprise
    import reprise.megatron

    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous-{launch}", rank=rank, world_size=RANKS)
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=TENSOR)
    args = types.SimpleNamespace(
        seed=1234, iteration=iteration, train_iters=16, global_batch_size=GLOBAL, micro_batch_size=MICRO
    )
    dp, dp_size = parallel_state.get_data_parallel_rank(), parallel_state.get_data_parallel_world_size()
    record = os.path.join(folder, "record")
    if on_all_ranks:
        same = dict(size=SAMPLES, unit="window", order=f"seed {args.seed}, {args.train_iters} iterations")
        recorder = reprise.Recorder(record, launch=launch, dp=dp, dp_size=dp_size, from_step=iteration, **same)
    else:
        recorder = reprise.megatron.recorder(record, args, parallel_state, launch=launch, size=SAMPLES)
    sampler = sampler_class()(SAMPLES, consumed, MICRO, dp, dp_size)
    loader = DataLoader(torch.arange(SAMPLES), batch_sampler=sampler)
    if recorder:
        recorder.watch(loader)
    batches = iter(loader)
    while iteration < last:
        for _ in range(ACCUMULATION):
            next(batches)
        iteration += 1
        if recorder:
            recorder.step(iteration)
            if iteration % 4 == 0:
                recorder.checkpoint(iteration, f"iter_{iteration:07}", position=iteration * GLOBAL)
    dist.barrier()
    if recorder:
        recorder.close()


def launch(*arguments):
    """Run all processes of a launch to its end."""
    jobs = [
        subprocess.Popen(
            [sys.executable, __file__, *map(str, arguments)],
            env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(RANKS), GLOO_SOCKET_IFNAME="lo"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    try:
        errors = [job.communicate(timeout=300)[1] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    if any(job.returncode for job in jobs):
        raise AssertionError("\n".join(errors)[-3000:])


class Megatron(unittest.TestCase):
    """Each test resumes a copy of the first launch, which went on to iteration 7 after a checkpoint at 4."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="reprise-lab-")
        cls.addClassCleanup(scratch.cleanup)
        cls.first = os.path.join(scratch.name, "first")
        cls.scratch = scratch.name
        os.mkdir(cls.first)
        launch(cls.first, "a", 0, 0, 7, "")

    def resume(self, *how):
        """The second launch, and what audit says of both."""
        self.folder = os.path.join(self.scratch, self.id())
        shutil.copytree(os.path.join(self.first, "record"), os.path.join(self.folder, "record"))
        launch(self.folder, "b", 4, *how)
        tool = [os.environ["REPRISE"], "audit", os.path.join(self.folder, "record"), "--format", "json"]
        report = json.loads(subprocess.run(tool, capture_output=True, text=True, check=False).stdout)
        blamed = [f["code"] for f in report["findings"] if f["severity"] in ("error", "warning")]
        return report["verdict"]["word"], blamed

    def files(self):
        return journal.files(os.path.join(self.folder, "record"))

    def test_one_recorder_for_each_data_parallel_rank(self):
        self.assertEqual(self.resume(4 * GLOBAL, 16, ""), ("EXACT", []))
        self.assertEqual(len(self.files()), 2 * RANKS // TENSOR)
        resumed = self.files()[2:]
        seen = sorted(key for file in resumed for _, _, keys in journal.steps(file) for key in keys)
        self.assertEqual(seen, list(range(4 * GLOBAL, SAMPLES)))
        opened = journal.objects(resumed[0], journal.OPEN)[0]
        self.assertEqual((opened["from_step"], opened["dp_size"], opened["unit"]), (4, 2, "window"))

    def test_consumed_samples_that_were_forgotten(self):
        word, blamed = self.resume(0, 10, "")
        self.assertEqual(word, "REPLAY")
        self.assertIn("D101", blamed)

    def test_a_record_of_every_rank_counts_once(self):
        self.assertEqual(self.resume(4 * GLOBAL, 16, "all"), ("EXACT", []))
        self.assertEqual(len(self.files()), RANKS // TENSOR + RANKS)


if __name__ == "__main__":
    where, name, first, position, end, everywhere = sys.argv[1:]
    train(where, name, int(first), int(position), int(end), bool(everywhere))
