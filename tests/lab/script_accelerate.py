# SPDX-License-Identifier: MIT
"""An Accelerate script as people launch it: script_accelerate.py ROOT STEPS. It resumes from the newest checkpoint below
ROOT by itself, prints each step, and leaves the rest to whoever stops it."""

import pathlib
import sys
import time

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration, set_seed

import reprise
from train import Net, Points, collate

root, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
set_seed(7)
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(Points(), batch_size=4, shuffle=True, collate_fn=collate)
net, optimizer, loader = accelerator.prepare(net, optimizer, loader)

whole = sorted(int(path.parent.name.split("-")[1]) for path in root.glob("ckpt/step-*/whole"))
step = whole[-1] if whole else 0
if step:
    accelerator.load_state(str(root / f"ckpt/step-{step}"))
recorder = reprise.Recorder(
    root / "record",
    from_step=step,
    dataset="points",
    size=len(Points()),
    rank=accelerator.process_index,
    world_size=accelerator.num_processes,
)
recorder.watch(loader)
epoch, done = divmod(step, len(loader))
while step < steps:
    loader.set_epoch(epoch)
    for batch in skip_first_batches(loader, done) if done else loader:
        accelerator.backward(net(batch["x"], batch["labels"])["loss"])
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        recorder.step(step, epoch=epoch)
        if step % 5 == 0:
            path = root / f"ckpt/step-{step}"
            accelerator.save_state(str(path))
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                (path / "whole").touch()
            recorder.checkpoint(step, str(path))
        if accelerator.is_main_process:
            print("step", step, flush=True)
        time.sleep(0.05)  # a kill is not to come steps later than it was sent
        if step == steps:
            break
    epoch, done = epoch + 1, 0
recorder.close()
accelerator.end_training()
