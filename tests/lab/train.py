# SPDX-License-Identifier: MIT
"""One launch of a tiny training job, as people write them, with reprise recording it.

train.py FRAMEWORK WAY ROOT ATTEMPT STEPS: trains up to STEPS, resuming from $LAB_CHECKPOINT where
ATTEMPT > 1, in the WAY that is named: "right", or one of the wrong ones. Prints each finished step, and
writes what it really read to truth-<rank>.jsonl beside ROOT, by itself and not by way of the recorder.
"""

import json
import os
import pathlib
import random
import sys
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

import reprise
import reprise.torch

SAMPLES, BATCH, SEED, SAVE_EVERY, ACCUMULATION, SKIPPED = 96, 4, 7, 5, 2, 2


class Points(Dataset):
    """A data set that returns its own index."""

    def __init__(self, n=SAMPLES):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"x": torch.tensor([i / self.n]), "labels": torch.tensor([0.5]), "id": i}


def collate(samples):
    return {name: torch.stack([sample[name] for sample in samples]) for name in ("x", "labels")} | {
        "id": [sample["id"] for sample in samples]
    }


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(1, 8), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1)
        )

    def forward(self, x, labels=None, **_):
        out = self.layers(x)
        return {"loss": (out - labels).pow(2).mean(), "logits": out}


class Truth:
    """What was read, told by the loop itself."""

    def __init__(self, root, attempt, rank=0):
        self.file = open(root.parent / f"truth-{rank}.jsonl", "a", buffering=1)
        self.attempt, self.rank, self.ids = attempt, rank, []

    def read(self, ids):
        self.ids += [int(i) for i in ids]

    def step(self, step):
        self.file.write(json.dumps({"attempt": self.attempt, "dp": self.rank, "step": step, "ids": self.ids}) + "\n")
        self.ids = []
        print(f"step {step}", flush=True)
        time.sleep(0.03)  # a kill is not to come steps later than it was sent


def resumed_from(attempt):
    """The checkpoint that reprise would resume from: the newest one may have been cut by the kill."""
    return pathlib.Path(os.environ["LAB_CHECKPOINT"]) if attempt > 1 else None


def save(root, step, state, rank=0):
    if rank:
        return
    (root / "ckpt").mkdir(exist_ok=True)
    path = root / "ckpt" / f"step-{step}.pt"
    torch.save(state, path.with_suffix(".tmp"))
    path.with_suffix(".tmp").rename(path)


class Job:
    """What all plain loops share: model, optimizer, schedule, their checkpoint, the record."""

    def __init__(self, way, root, attempt, rank=0, world=1, **how):
        self.way, self.root, self.attempt, self.rank = way, root, attempt, rank
        torch.manual_seed(SEED)
        self.net = Net()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda s: min(1.0, (s + 1) / 20))
        self.step = 0
        self.saved = {}
        path = resumed_from(attempt)
        if path:
            self.saved = torch.load(path, weights_only=False)
            self.step = self.saved["step"]
            self.net.load_state_dict(self.saved["model"])
            if way != "optimizer-cold":
                self.optimizer.load_state_dict(self.saved["optimizer"])
            if way != "schedule-restarted":
                self.schedule.load_state_dict(self.saved["scheduler"])
            if way != "random-reseeded":
                torch.set_rng_state(self.saved["torch_rng"])
        intent = {"skip": [self.step + 1, self.step + SKIPPED]} if path and way == "skip-declared" else None
        self.truth = Truth(root, attempt, rank)
        self.recorder = reprise.Recorder(
            root / "record",
            launch=f"launch-{attempt}",
            from_step=self.step,
            dataset="points",
            size=SAMPLES,
            rank=rank,
            world_size=world,
            seed=SEED,
            intent=intent,
            **how,
        )

    def learn(self, batch, last=True):
        self.truth.read(batch["id"])
        self.net(batch["x"], batch["labels"])["loss"].backward()
        if not last:
            return
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.schedule.step()
        self.step += 1
        self.recorder.step(self.step, epoch=self.epoch)
        self.truth.step(self.step)

    def checkpoint(self, **more):
        if self.step % SAVE_EVERY:
            return
        state = dict(
            step=self.step,
            model=self.net.state_dict(),
            optimizer=self.optimizer.state_dict(),
            scheduler=self.schedule.state_dict(),
            torch_rng=torch.get_rng_state(),
            **more,
        )
        save(self.root, self.step, state, self.rank)
        self.recorder.checkpoint(self.step, f"ckpt/step-{self.step}.pt")


def shuffled(epoch, seed=SEED):
    return torch.Generator().manual_seed(seed + epoch)


def torch_loop(way, root, attempt, steps):
    """DataLoader with a seed per epoch, accumulation, and a counter of batches for the resume."""
    job = Job(way, root, attempt, accumulation=ACCUMULATION, micro_batch=BATCH)
    saved, resumed = job.saved, attempt > 1
    epoch, done = saved.get("epoch", 0), saved.get("batch", 0)
    if way == "forgets-first-resume":
        done = saved.get("batch_since_start", 0)
    skip = {
        "from-the-top": 0,
        "new-seed": 0,
        "accumulation-factor": done // ACCUMULATION,
        "skipped-twice": 2 * done,
        "one-too-many": done + ACCUMULATION,
        "skip-declared": done + SKIPPED * ACCUMULATION,
    }.get(way, done) if resumed else 0
    seed = SEED + 1000 * attempt if way == "new-seed" and resumed else SEED
    since_start = 0
    while job.step < steps:
        job.epoch = epoch
        order = 0 if way == "epoch-seed-lost" and resumed else epoch
        loader = job.recorder.watch(
            DataLoader(
                Points(),
                batch_size=BATCH,
                shuffle=True,
                generator=shuffled(order, seed),
                collate_fn=collate,
                num_workers=2 if way == "workers" else 0,
            )
        )
        for i, batch in enumerate(loader):
            if i < skip:
                job.recorder.skip()
                continue
            job.learn(batch, (i + 1) % ACCUMULATION == 0)
            since_start += 1
            if (i + 1) % ACCUMULATION == 0:
                job.checkpoint(epoch=epoch, batch=i + 1, batch_since_start=since_start)
            if job.step >= steps:
                break
        epoch, since_start = epoch + 1, 0
        if way != "skip-in-every-epoch":
            skip = 0
    job.recorder.close()


def distributed_loop(way, root, attempt, steps):
    """DistributedSampler on two gloo processes."""
    import torch.distributed as dist
    from torch.utils.data.distributed import DistributedSampler

    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    rendezvous = f"file://{root.parent}/rendezvous-{attempt}"
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=world)
    batch_size = 2 * BATCH // world
    job = Job(way, root, attempt, rank, world, micro_batch=batch_size)
    saved, resumed = job.saved, attempt > 1
    epoch, skip = saved.get("epoch", 0), saved.get("batch", 0)
    seed, shard = SEED, rank
    if resumed and way == "ranks-unsynchronised":
        seed = SEED + 17 * rank + 1
    if resumed and way == "one-shard-for-all":
        shard = 0
    if resumed and way == "world-factor":
        skip *= world
    sampler = DistributedSampler(Points(), world, shard, seed=seed)
    while job.step < steps:
        job.epoch = epoch
        if not (way == "set-epoch-forgotten" and resumed):
            sampler.set_epoch(epoch)
        loader = job.recorder.watch(DataLoader(Points(), batch_size=batch_size, sampler=sampler, collate_fn=collate))
        for i, batch in enumerate(loader):
            if i < skip:
                job.recorder.skip()
                continue
            job.learn(batch)
            for p in job.net.parameters():
                dist.all_reduce(p.data)
                p.data /= world
            job.checkpoint(epoch=epoch, batch=i + 1)
            if job.step >= steps:
                break
        epoch, skip = epoch + 1, 0
    job.recorder.close()
    dist.destroy_process_group()


def stateful_loop(way, root, attempt, steps):
    """torchdata's StatefulDataLoader, its state in the checkpoint."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    job = Job(way, root, attempt, micro_batch=BATCH)
    loader = StatefulDataLoader(Points(), batch_size=BATCH, shuffle=True, collate_fn=collate, generator=shuffled(0))
    job.recorder.watch(loader)
    epoch = job.saved.get("epoch", 0)
    if attempt > 1 and way == "loaded-too-late":
        iterator = iter(loader)
        loader.load_state_dict(job.saved["loader"])
    else:
        if attempt > 1 and way != "state-not-loaded":
            loader.load_state_dict(job.saved["loader"])
        iterator = iter(loader)
    while job.step < steps:
        job.epoch = epoch
        for batch in iterator:
            job.learn(batch)
            job.checkpoint(epoch=epoch, loader=loader.state_dict())
            if job.step >= steps:
                break
        epoch += 1
        iterator = iter(loader)
    job.recorder.close()


def sources_loop(way, root, attempt, steps):
    """Two sources, drawn from by weight; each goes on at its own position."""
    weights = {"web": 0.75, "code": 0.25}
    job = Job(way, root, attempt, sources={n: {"size": 4000, "weight": w} for n, w in weights.items()}, order="in order")
    at = dict(job.saved.get("at", {"web": 0, "code": 0}))
    draw = torch.Generator().manual_seed(SEED)
    if "draw" in job.saved:
        draw.set_state(job.saved["draw"])
    share = weights["code"]
    if attempt > 1 and way == "weights-changed":
        share = 0.6
    if attempt > 1 and way == "source-from-the-top":
        at["code"] = 0
    if attempt > 1 and way == "source-lost":
        share = 0.0
    job.epoch = 0
    while job.step < steps:
        names = ["code" if torch.rand(1, generator=draw) < share else "web" for _ in range(8)]
        ids = []
        for name in names:
            ids.append(at[name])
            at[name] += 1
        job.recorder.commit(ids, "ids", names)
        x = torch.tensor([[i / 4000] for i in ids])
        job.learn({"x": x, "labels": torch.full_like(x, 0.5), "id": ids})
        job.checkpoint(at=dict(at), draw=draw.get_state())
    job.recorder.close()


def accelerate_loop(way, root, attempt, steps):
    """Accelerate: prepare, save_state, skip_first_batches."""
    from accelerate import Accelerator, skip_first_batches
    from accelerate.utils import DataLoaderConfiguration, set_seed

    set_seed(SEED)
    stateful = way == "stateful"
    how = DataLoaderConfiguration(use_seedable_sampler=way != "plain-sampler", use_stateful_dataloader=stateful)
    accelerator = Accelerator(cpu=True, dataloader_config=how)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    loader = DataLoader(Points(), batch_size=BATCH, shuffle=True, collate_fn=collate)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    step = epoch = done = 0
    if attempt > 1:
        path = resumed_from(attempt)
        accelerator.load_state(str(path))
        step = int(path.name.split("-")[1])
        epoch, done = divmod(step, len(loader))
    recorder = reprise.Recorder(root / "record", launch=f"launch-{attempt}", from_step=step, dataset="points", seed=SEED)
    recorder.watch(loader)
    truth = Truth(root, attempt)
    while step < steps:
        if hasattr(loader, "set_epoch"):
            loader.set_epoch(epoch)
        skip = 0 if stateful or way == "not-skipped" else done
        for batch in skip_first_batches(loader, skip) if skip else loader:
            truth.read(batch["id"])
            accelerator.backward(net(batch["x"], batch["labels"])["loss"])
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            recorder.step(step, epoch=epoch)
            truth.step(step)
            if step % SAVE_EVERY == 0:
                accelerator.save_state(str(root / "ckpt" / f"step-{step}"))
                recorder.checkpoint(step, f"ckpt/step-{step}")
            if step >= steps:
                break
        epoch, done = epoch + 1, 0
    recorder.close()


def trainer_loop(way, root, attempt, steps):
    """Transformers' Trainer."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    import reprise.transformers

    truth = Truth(root, attempt)

    class Watched(Net):
        def forward(self, x=None, labels=None, **_):
            truth.read((x.flatten() * SAMPLES).round().int().tolist())
            return super().forward(x, labels)

    class Steps(TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            truth.step(state.global_step)

    torch.manual_seed(SEED)
    args = TrainingArguments(
        output_dir=str(root / "ckpt"),
        max_steps=steps,
        per_device_train_batch_size=2 if way == "batch-halved" and attempt > 1 else BATCH,
        gradient_accumulation_steps=ACCUMULATION,
        save_steps=SAVE_EVERY,
        ignore_data_skip=way == "ignore-data-skip",
        seed=SEED + (1 if way == "new-seed" and attempt > 1 else 0),
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
    )
    callback = reprise.transformers.Callback(
        root / "record", launch=f"launch-{attempt}", dataset="points", key=lambda sample: round(float(sample["x"]) * SAMPLES)
    )
    Trainer(Watched(), args, train_dataset=Points(), callbacks=[callback, Steps()]).train(
        resume_from_checkpoint=attempt > 1 and str(resumed_from(attempt))
    )


def lightning_loop(way, root, attempt, steps):
    """Lightning: a plain DataLoader starts its epoch again on a mid-epoch resume; a stateful one goes on."""
    from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything
    from lightning.pytorch.callbacks import ModelCheckpoint
    from torchdata.stateful_dataloader import StatefulDataLoader

    import reprise.lightning

    truth = Truth(root, attempt)

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch, index):
            truth.read(batch["id"])
            return self.net(batch["x"], batch["labels"])["loss"]

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    class Steps(Callback):
        def on_train_batch_end(self, trainer, *_):
            truth.step(trainer.global_step)

    class RandomState(Callback):
        """What Lightning leaves out."""

        def on_save_checkpoint(self, trainer, module, checkpoint):
            checkpoint["random"] = dict(
                torch=torch.get_rng_state(), numpy=numpy.random.get_state(), python=random.getstate()
            )

        def on_load_checkpoint(self, trainer, module, checkpoint):
            torch.set_rng_state(checkpoint["random"]["torch"])
            numpy.random.set_state(checkpoint["random"]["numpy"])
            random.setstate(checkpoint["random"]["python"])

    seed_everything(SEED)
    kind = DataLoader if way == "plain-loader" else StatefulDataLoader
    loader = kind(Points(), batch_size=BATCH, shuffle=True, collate_fn=collate, generator=shuffled(0))
    trainer = Trainer(
        max_steps=steps,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=root,
        callbacks=[
            ModelCheckpoint(root / "ckpt", every_n_train_steps=SAVE_EVERY, save_top_k=-1, filename="{step}"),
            reprise.lightning.Callback(root / "record", launch=f"launch-{attempt}", dataset="points", size=SAMPLES),
            Steps(),
            *([RandomState()] if way != "random-not-saved" else []),
        ],
    )
    path = resumed_from(attempt)
    trainer.fit(Module(), loader, ckpt_path=path, weights_only=False)


LOOPS = {
    "torch": torch_loop,
    "distributed": distributed_loop,
    "stateful": stateful_loop,
    "sources": sources_loop,
    "accelerate": accelerate_loop,
    "transformers": trainer_loop,
    "lightning": lightning_loop,
}

if __name__ == "__main__":
    framework, way, root, attempt, steps = sys.argv[1:]
    LOOPS[framework](way, pathlib.Path(root), int(attempt), int(steps))
