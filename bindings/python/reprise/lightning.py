# SPDX-License-Identifier: MIT
"""A callback for Lightning's Trainer (lightning or pytorch_lightning).

    trainer = Trainer(..., callbacks=[reprise.lightning.Callback("runs/record")])
"""

from torch.utils.data import DataLoader

try:
    from lightning.pytorch.callbacks import Callback as _Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback as _Callback

from .recorder import Recorder, hook
from .torch import watch


def _loaders(value):
    """Every DataLoader in what a train_dataloader() gave: one, or collections of them."""
    if isinstance(value, DataLoader):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _loaders(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _loaders(item)
    elif hasattr(value, "iterables"):
        yield from _loaders(value.iterables)


class Callback(_Callback):
    """Record each optimizer step below `folder`; `how` goes to Recorder and watch()."""

    def __init__(self, folder, *, key="index", source=None, tokens=None, **how):
        self.recorder = folder if isinstance(folder, Recorder) else None
        self.folder, self.how = folder, how
        Recorder.check(folder, how)
        self.watching = dict(key=key, source=source, tokens=tokens)
        self.step = 0

    @hook
    def setup(self, trainer, pl_module, stage):
        if stage != "fit":
            return
        if self.recorder is None or (self.recorder.closed and self.recorder is not self.folder):  # a fit() after one
            self.recorder = Recorder(
                self.folder, rank=trainer.global_rank, world_size=trainer.world_size, **self.how
            )
        # The loaders are made, and their workers started, before on_train_start.
        source = trainer.fit_loop._data_source
        made = source.dataloader

        def dataloader(*arguments):
            value = made(*arguments)
            self._watch(value)
            return value

        source.dataloader = dataloader

    @hook
    def _watch(self, value):
        for loader in _loaders(value):
            # Lightning fetches ahead of the loop.
            watch(loader, self.recorder, ahead=True, **self.watching)

    @hook
    def on_train_start(self, trainer, pl_module):
        self.step = trainer.global_step
        self.recorder.describe(from_step=self.step, accumulation=trainer.accumulate_grad_batches)

    @hook
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.recorder.consume()

    @hook
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step != self.step:
            self.step = trainer.global_step
            self.recorder.step(self.step, epoch=trainer.current_epoch)

    @hook
    def on_save_checkpoint(self, trainer, pl_module, checkpoint):
        self.recorder.checkpoint(trainer.global_step)

    @hook
    def on_train_end(self, trainer, pl_module):
        self.recorder.close("finished")

    @hook
    def on_exception(self, trainer, pl_module, exception):
        if self.recorder is not None:
            self.recorder.close(type(exception).__name__)
