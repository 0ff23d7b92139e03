# SPDX-License-Identifier: MIT
"""What the Python hooks record is what the training loop was handed: real loaders and trainers, cut and resumed.

Every data set here returns the sample's index as its content, so that the loop itself knows the truth.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["CUDA_VISIBLE_DEVICES"] = ""

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


if __name__ == "__main__":
    for name in ("RANK", "WORLD_SIZE", "REPRISE_LAUNCH", "REPRISE_REHEARSE"):
        os.environ.pop(name, None)
    unittest.main(verbosity=1)
