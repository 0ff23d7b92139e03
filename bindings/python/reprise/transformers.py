# SPDX-License-Identifier: MIT
"""A callback for Transformers' Trainer.

    trainer = Trainer(..., callbacks=[reprise.transformers.Callback("out/record")])

A callback never sees a batch, and the Trainer drops columns and makes new loaders on a resume: the loader's
collate function is watched instead, which goes with it.
"""

import os

from transformers import TrainerCallback

from .recorder import Recorder, hook
from .torch import watch


def _rate(scheduler):
    """The learning rate, or None: a scheduler of somebody's own, or ReduceLROnPlateau before its first metric."""
    try:
        return float(scheduler.get_last_lr()[0])
    except Exception:  # noqa: BLE001: worth no step's record
        return None


class Callback(TrainerCallback):
    """Record each optimizer step of a Trainer below `folder`; `how` goes to Recorder and watch()."""

    def __init__(self, folder, *, key="index", source=None, tokens=None, **how):
        self.recorder = folder if isinstance(folder, Recorder) else None
        self.folder, self.how = folder, how
        Recorder.check(folder, how)
        self.watching = dict(key=key, source=source, tokens=tokens)

    @hook
    def on_train_begin(self, args, state, control, train_dataloader=None, **_):
        if self.recorder is None or (self.recorder.closed and self.recorder is not self.folder):  # a train() after one
            self.recorder = Recorder(
                self.folder,
                rank=args.process_index,
                world_size=args.world_size,
                **self.how,
            )
        self.recorder.describe(
            from_step=state.global_step,
            seed=args.data_seed if args.data_seed is not None else args.seed,
            accumulation=args.gradient_accumulation_steps,
            micro_batch=args.per_device_train_batch_size,
            global_batch=args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size,
        )
        if train_dataloader is not None:
            watch(train_dataloader, self.recorder, **self.watching)

    @hook
    def on_step_end(self, args, state, control, lr_scheduler=None, **_):
        # At an epoch's last step the Trainer has counted to the next one already.
        epoch = None if state.epoch is None else max(0, -int(-state.epoch // 1) - 1)
        self.recorder.step(state.global_step, epoch=epoch, lr=_rate(lr_scheduler))

    @hook
    def on_save(self, args, state, control, **_):
        path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        self.recorder.checkpoint(state.global_step, path)

    @hook
    def on_train_end(self, args, state, control, **_):
        self.recorder.close("finished")
