# SPDX-License-Identifier: MIT
"""What the Python hooks record is what the training loop was handed: real loaders and trainers, cut and resumed.

Every data set here returns the sample's index as its content, so that the loop itself knows the truth.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

import journal
import reprise
import reprise.torch


class Indexed(Dataset):
    def __init__(self, n=64):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"x": torch.tensor([float(i)]), "labels": torch.tensor([float(i)])}


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(40):
            yield torch.tensor([float(i)])


def ids(batch):
    value = batch["x"] if isinstance(batch, dict) else batch
    return value.flatten().int().tolist()


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="reprise-lab-")
        self.addCleanup(self.scratch.cleanup)
        self.folder = os.path.join(self.scratch.name, "record")

    def recorded(self, index=-1):
        """[[key...] for each step] of one of the journals, the newest by default."""
        return [keys for _, _, keys in journal.steps(journal.files(self.folder)[index])]


class PlainLoaders(Case):
    def run_loop(self, loader, steps, **how):
        recorder = reprise.Recorder(self.folder, from_step=0)
        seen = []
        for step, batch in enumerate(recorder.watch(loader, **how), 1):
            seen.append(ids(batch))
            recorder.step(step)
            if step == steps:
                break
        summary = recorder.close()
        self.assertEqual(summary["first_error"], "")
        self.assertEqual(summary["failed_calls"], 0)
        return seen

    def test_what_workers_prefetch_is_not_consumed(self):
        for workers, context in ((0, None), (2, "fork"), (2, "spawn")):
            with self.subTest(workers=workers, context=context):
                loader = DataLoader(
                    Indexed(), batch_size=4, shuffle=True, num_workers=workers, multiprocessing_context=context
                )
                seen = self.run_loop(loader, 7)
                self.assertEqual(self.recorded(), seen)

    def test_stateful_loader_cut_and_resumed(self):
        from torchdata.stateful_dataloader import StatefulDataLoader

        for workers in (0, 2):
            with self.subTest(workers=workers):
                torch.manual_seed(0)
                first = StatefulDataLoader(Indexed(), batch_size=4, shuffle=True, num_workers=workers)
                recorder = reprise.Recorder(self.folder)
                recorder.watch(first)
                seen, state = [], None
                for step, batch in enumerate(first, 1):
                    seen.append(ids(batch))
                    recorder.step(step)
                    if step == 5:
                        state = first.state_dict()
                        break
                recorder.close()
                self.assertEqual(self.recorded(), seen)
                again = StatefulDataLoader(Indexed(), batch_size=4, shuffle=True, num_workers=workers)
                again.load_state_dict(state)
                self.assertEqual(len(self.run_loop(again, 100)), 11)

    def test_iterable_data_sets_are_known_by_content(self):
        self.run_loop(DataLoader(Stream(), batch_size=4), 5)
        first = self.recorded()
        self.run_loop(DataLoader(Stream(), batch_size=4), 5)
        self.assertEqual(first, self.recorded())
        self.assertEqual(len({key for keys in first for key in keys}), 20)
        self.assertEqual(journal.objects(journal.files(self.folder)[-1], journal.OPEN)[0]["keys"], "content")

    def test_a_key_of_the_users_and_sources(self):
        self.run_loop(
            DataLoader(Indexed(), batch_size=4),
            3,
            key=lambda sample: f"doc-{int(sample['x'])}",
            source=lambda sample: "even" if int(sample["x"]) % 2 == 0 else "odd",
            tokens=lambda sample: 7,
        )
        opened = journal.objects(journal.files(self.folder)[-1], journal.OPEN)[0]
        self.assertEqual(opened["keys"], "text")
        self.assertEqual([source["name"] for source in opened["sources"]], ["even", "odd"])

    def test_one_sample_at_a_time(self):
        seen = self.run_loop(DataLoader(Indexed(), batch_size=None), 6)
        self.assertEqual(self.recorded(), seen)

    def test_a_look_at_a_batch_is_not_consumed(self):
        for workers in (0, 2):
            with self.subTest(workers=workers):
                recorder = reprise.Recorder(self.folder)
                loader = recorder.watch(DataLoader(Indexed(10), batch_size=4, shuffle=True, num_workers=workers))
                seen, step, batches = [], 0, 0
                for _ in range(4):
                    next(iter(loader))
                    # Three batches an epoch: steps of two batches go over its end.
                    for batch in loader:
                        batches += 1
                        seen.append(ids(batch))
                        if batches % 2 == 0:
                            step += 1
                            recorder.step(step)
                recorder.close()
                whole = [seen[i] + seen[i + 1] for i in range(0, len(seen), 2)]
                self.assertEqual(self.recorded()[0], whole[0])
                self.assertEqual([len(keys) for keys in self.recorded()], [len(keys) for keys in whole])

    def test_accumulation_adds_batches_up(self):
        recorder = reprise.Recorder(self.folder)
        seen = []
        for i, batch in enumerate(recorder.watch(DataLoader(Indexed(), batch_size=4)), 1):
            seen += ids(batch)
            if i % 4 == 0:
                recorder.step(i // 4)
        recorder.close()
        self.assertEqual(sum(self.recorded(), []), seen)
        self.assertEqual(len(self.recorded()), 4)

    def test_errors_never_reach_training(self):
        recorder = reprise.Recorder(self.folder)
        with self.assertWarns(RuntimeWarning):
            self.assertFalse(recorder.step(1, ["a", 2]))
        self.assertFalse(recorder.step(2, [1, 2], losses=[1.0]))
        self.assertFalse(recorder.step(3, torch.ones(2)))
        self.assertTrue(recorder.step(4, torch.arange(2)))
        self.assertEqual(recorder.close()["failed_calls"], 3)
        self.assertFalse(recorder.step(5, [1]))

    def test_without_the_library_training_goes_on(self):
        code = (
            "import reprise, sys; r = reprise.Recorder(sys.argv[1]); "
            "assert r.step(1, [1]) is False; assert r.close()['steps'] == 0"
        )
        done = subprocess.run(
            [sys.executable, "-W", "always", "-c", code, self.folder],
            env=dict(os.environ, REPRISE_RECORD_LIBRARY="/nonexistent.so"),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing is recorded", done.stderr)


def raises(sample):
    raise KeyError("no such field")


class Plain:
    """A sample that prints as an address in memory."""

    def __init__(self, number):
        self.number = number


class Objects(IterableDataset):
    def __init__(self, make):
        self.make = make

    def __iter__(self):
        return (self.make(i) for i in range(8))


class Odd(Case):
    """What people give to a recorder that it was not made for."""

    def loop(self, loader, **how):
        """The recorder's summary, after a loop in which no exception may reach the training."""
        recorder = reprise.Recorder(self.folder, from_step=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for step, _ in enumerate(recorder.watch(loader, **how), 1):
                recorder.step(step)
            return recorder.close()

    def test_functions_that_raise_cost_the_record_and_not_the_run(self):
        for workers in (0, 2):
            for how in ({"key": raises}, {"key": lambda sample: None}, {"source": raises}, {"tokens": raises}):
                with self.subTest(workers=workers, how=list(how)):
                    summary = self.loop(DataLoader(Indexed(16), batch_size=4, num_workers=workers), **how)
                    self.assertEqual((summary["steps"], summary["failed_calls"]), (0, 4))

    def test_content_is_the_same_in_each_process(self):
        def sparse(i):
            return torch.sparse_coo_tensor([[i]], [1.0], (8,))

        def objects(i):
            return numpy.array([str(i), None], dtype=object)

        def strings(i):
            return {str(i), "a", "b", "c"}

        for make in (Plain, sparse, objects, strings):
            with self.subTest(make=make.__name__):
                keys = [reprise.torch._content(make(i)) for i in (1, 1, 2)]
                self.assertEqual(keys[0], keys[1])
                self.assertNotEqual(keys[0], keys[2])
        for make in (lambda i: torch.empty(2, device="meta"), lambda i: object()):
            summary = self.loop(DataLoader(Objects(make), batch_size=4, collate_fn=list))
            self.assertEqual((summary["steps"], summary["failed_calls"]), (0, 2))

    def test_integers_of_any_size_and_numbers_that_are_none(self):
        big = 1 << 63
        recorder = reprise.Recorder(self.folder)
        self.assertTrue(recorder.step(1, [big + 1, 1]))
        self.assertTrue(recorder.step(2, numpy.array([big + 1], dtype=numpy.uint64)))
        self.assertTrue(recorder.step(3, [1 << 70, (1 << 70) + 1]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertFalse(recorder.step(4, [1.5]))
        recorder.close()
        first, second, third = self.recorded()
        self.assertEqual((first, second), ([1 - big, 1], [1 - big]))
        self.assertEqual(len(set(third)), 2)
        self.loop(DataLoader(Indexed(4), batch_size=4), key=lambda sample: sample["x"][0] / 8)
        self.assertEqual(len(set(self.recorded()[0])), 4)

    def test_a_sampler_of_index_lists(self):
        class Lists(Indexed):
            def __getitem__(self, i):
                return torch.tensor(i)

        sampler = torch.utils.data.BatchSampler(range(16), 4, False)
        summary = self.loop(DataLoader(Lists(), sampler=sampler, batch_size=None))
        self.assertEqual(summary["samples"], 16)
        self.assertEqual(self.recorded()[1], [4, 5, 6, 7])

    def test_two_iterators_at_once_and_persistent_workers(self):
        loader = DataLoader(Indexed(8), batch_size=4)
        recorder = reprise.Recorder(self.folder)
        recorder.watch(loader)
        for step, _ in enumerate(zip(loader, loader), 1):
            recorder.step(step)
        recorder.close()
        self.assertEqual(self.recorded()[0], [0, 1, 2, 3] * 2)

        loader = DataLoader(Indexed(8), batch_size=4, num_workers=1, persistent_workers=True)
        recorder = reprise.Recorder(self.folder)
        next(iter(recorder.watch(loader)))
        for step, _ in enumerate(loader, 1):
            recorder.step(step)
        recorder.close()
        self.assertEqual(self.recorded(), [[0, 1, 2, 3], [4, 5, 6, 7]])

    def test_a_loader_goes_to_the_recorder_that_watches_it_last(self):
        loader = DataLoader(Indexed(16), batch_size=4)
        self.assertEqual(self.loop(loader)["samples"], 16)
        self.assertEqual(self.loop(loader)["samples"], 16)

    def test_a_closed_recorder_keeps_nothing(self):
        recorder = reprise.Recorder(self.folder)
        loader = recorder.watch(DataLoader(Indexed(16), batch_size=4))
        recorder.close()
        self.assertEqual(len(list(loader)), 4)
        self.assertEqual(recorder._pending, [])

    def test_warnings_that_are_errors_do_not_reach_training(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            recorder = reprise.Recorder("/proc/no/such/folder")
            self.assertFalse(recorder.step(1, [1]))
            self.assertFalse(recorder.step(2))
            self.assertEqual(recorder.close()["failed_calls"], 3)

    def test_a_forked_child_is_counted(self):
        recorder = reprise.Recorder(self.folder)
        recorder.step(1, [1])
        child = os.fork()
        if child == 0:
            recorder.step(2, [2])
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(recorder.close()["forked_calls"], 1)

    def test_a_folder_removed_under_the_recorder_is_told(self):
        recorder = reprise.Recorder(self.folder)
        recorder.step(1, [1])
        shutil.rmtree(self.folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertFalse(recorder.checkpoint(1))
        self.assertTrue(recorder.step(2, [2]))
        self.assertTrue(recorder.checkpoint(2))
        recorder.close()
        self.assertEqual(self.recorded(), [[2]])


class AccelerateLoaders(Case):
    def test_prepared_loaders_and_skipped_batches(self):
        from accelerate import Accelerator, skip_first_batches

        for watched_first in (False, True):
            with self.subTest(watched_first=watched_first):
                accelerator = Accelerator(cpu=True)
                recorder = reprise.Recorder(self.folder)
                torch.manual_seed(3)
                loader = DataLoader(Indexed(), batch_size=4, shuffle=True)
                if watched_first:
                    recorder.watch(loader)
                loader = accelerator.prepare(loader)
                recorder.watch(loader)
                seen = []
                for step, batch in enumerate(skip_first_batches(loader, 3), 4):
                    seen.append(ids(batch))
                    recorder.step(step)
                    if step == 9:
                        break
                recorder.close()
                self.assertEqual(self.recorded(), seen)
                self.assertEqual(len(seen), 6)

    def test_a_stateful_loader_that_began_before_it_was_watched(self):
        from accelerate import Accelerator
        from accelerate.utils import DataLoaderConfiguration

        how = DataLoaderConfiguration(use_stateful_dataloader=True)
        for workers in (0, 2):
            with self.subTest(workers=workers):
                recorder = reprise.Recorder(self.folder)
                loader = DataLoader(Indexed(), batch_size=4, shuffle=True, num_workers=workers)
                if workers:
                    late = Accelerator(cpu=True, dataloader_config=how).prepare(loader)
                    with self.assertWarns(RuntimeWarning):
                        recorder.watch(late)
                    next(iter(late))
                    with self.assertWarns(RuntimeWarning):
                        self.assertFalse(recorder.step(1))
                    recorder = reprise.Recorder(self.folder)
                    recorder.watch(loader)
                loader = recorder.watch(Accelerator(cpu=True, dataloader_config=how).prepare(loader))
                seen = []
                for step, batch in enumerate(loader, 1):
                    seen.append(ids(batch))
                    self.assertTrue(recorder.step(step))
                recorder.close()
                self.assertEqual(self.recorded(), seen)

    def test_iterable_skips_inside_the_loader(self):
        from accelerate import Accelerator, skip_first_batches

        accelerator = Accelerator(cpu=True)
        recorder = reprise.Recorder(self.folder)
        loader = accelerator.prepare(DataLoader(Stream(), batch_size=4))
        recorder.watch(loader, key=lambda sample: int(sample))
        seen = []
        for step, batch in enumerate(skip_first_batches(loader, 2), 3):
            seen.append(ids(batch))
            recorder.step(step)
        recorder.close()
        self.assertEqual(self.recorded(), seen)
        self.assertEqual(seen[0], [8, 9, 10, 11])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def forward(self, x=None, labels=None):
        self.seen.append(x.flatten().int().tolist())
        out = self.layer(x)
        return {"loss": ((out - labels) ** 2).mean(), "logits": out}


class Transformers(Case):
    def train(self, model, steps, resume=None):
        from transformers import Trainer, TrainingArguments

        import reprise.transformers

        args = TrainingArguments(
            output_dir=os.path.join(self.scratch.name, "out"),
            max_steps=steps,
            per_device_train_batch_size=2,
            gradient_accumulation_steps=2,
            save_steps=6,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            logging_strategy="no",
        )
        trainer = Trainer(
            model, args, train_dataset=Indexed(), callbacks=[reprise.transformers.Callback(self.folder)]
        )
        trainer.train(resume_from_checkpoint=resume)

    def test_cut_and_resumed(self):
        model = Net()
        self.train(model, 12)
        whole = self.recorded()
        self.assertEqual(sum(whole, []), sum(model.seen, []))
        self.assertEqual(len(whole), 12)
        model = Net()
        self.train(model, 12, os.path.join(self.scratch.name, "out", "checkpoint-6"))
        again = journal.files(self.folder)[-1]
        self.assertEqual(sum(self.recorded(), []), sum(model.seen, []))
        self.assertEqual(self.recorded(), whole[6:])
        opened = journal.objects(again, journal.OPEN)[0]
        self.assertEqual((opened["from_step"], opened["accumulation"]), (6, 2))
        self.assertEqual([e["checkpoint"] for e in journal.objects(again, journal.EVENT)], [12])


class Lightning(Case):
    def test_accumulation_and_checkpoints(self):
        from lightning.pytorch import LightningModule, Trainer

        import reprise.lightning

        class Model(LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(1, 1)
                self.seen = []

            def training_step(self, batch, index):
                self.seen.append(ids(batch))
                return self.layer(batch["x"]).pow(2).mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=1e-3)

        for workers in (0, 2):
            with self.subTest(workers=workers):
                model = Model()
                trainer = Trainer(
                    max_steps=9,
                    accumulate_grad_batches=2,
                    accelerator="cpu",
                    logger=False,
                    enable_progress_bar=False,
                    enable_model_summary=False,
                    default_root_dir=self.scratch.name,
                    callbacks=[reprise.lightning.Callback(self.folder)],
                )
                trainer.fit(model, DataLoader(Indexed(), batch_size=4, shuffle=True, num_workers=workers))
                self.assertEqual(sum(self.recorded(), []), sum(model.seen, []))
                self.assertEqual(len(self.recorded()), 9)


class Rehearsal(Case):
    SCRIPT = """
import os, sys, torch, reprise
sys.path.insert(0, sys.argv[2])
from test_hooks import Indexed, DataLoader
recorder = reprise.Recorder(os.path.join(sys.argv[1], "record"), from_step=10)
torch.manual_seed(5)
loader = recorder.watch(DataLoader(Indexed(), batch_size=4, shuffle=True, num_workers=int(sys.argv[3])))
for step, batch in enumerate(loader, 11):
    open(os.path.join(sys.argv[1], "trained"), "w").close()
    recorder.step(step)
"""

    def test_no_batch_is_handed_over_and_no_file_changes(self):
        for workers in ("0", "2"):
            with self.subTest(workers=workers):
                run = pathlib.Path(self.scratch.name) / f"run{workers}"
                out = pathlib.Path(self.scratch.name) / f"rehearsal{workers}"
                run.mkdir()
                (run / "checkpoint").write_text("as it was")
                before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in run.rglob("*")}
                done = subprocess.run(
                    [sys.executable, "-c", self.SCRIPT, str(run), os.path.dirname(__file__), workers],
                    env=dict(os.environ, REPRISE_REHEARSE="5", REPRISE_REHEARSE_OUT=str(out)),
                    capture_output=True,
                    text=True,
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("rehearsed 5 steps, 20 samples", done.stderr)
                after = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in run.rglob("*")}
                self.assertEqual(before, after)
                (file,) = journal.files(out)
                self.assertEqual([step for step, _, _ in journal.steps(file)], [11, 12, 13, 14, 15])
                self.assertEqual(journal.objects(file, journal.OPEN)[0]["kind"], "rehearsal")

    def test_a_rehearsal_that_fails_trains_nothing(self):
        begin = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import reprise, test_hooks as t\n"
        loop = "r = reprise.Recorder('run')\ntry: list(r.watch(t.DataLoader({}, 4)))\nfinally: print('trained')"
        ids = "reprise.Recorder('run').step(1, [1]); print('trained')"
        broken = "t.torch.utils.data.Subset(range(4), range(8))"  # the second batch raises IndexError
        for script, extra in (
            (loop.format("t.Indexed()"), {"REPRISE_REHEARSE_OUT": "/proc/no/such/folder"}),
            (loop.format(broken), {}),
            (ids, {}),
        ):
            with self.subTest(script=script):
                done = subprocess.run(
                    [sys.executable, "-c", begin + script],
                    env=dict(os.environ, REPRISE_REHEARSE="5", **extra),
                    cwd=self.scratch.name,
                    capture_output=True,
                    text=True,
                )
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)


if __name__ == "__main__":
    for name in ("RANK", "WORLD_SIZE", "REPRISE_LAUNCH", "REPRISE_REHEARSE"):
        os.environ.pop(name, None)
    unittest.main(verbosity=1)
