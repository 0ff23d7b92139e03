# SPDX-License-Identifier: MIT
"""Record which samples a training run consumes.

    import reprise

    recorder = reprise.Recorder("runs/tiny/record")
    loader = recorder.watch(loader)          # a PyTorch DataLoader
    for batch in loader:
        ...
        recorder.step(step)                  # after optimizer.step()

Then `reprise audit runs/tiny` tells what the model has seen. Hooks for frameworks are in reprise.torch,
reprise.transformers, reprise.lightning and reprise.megatron.
"""

from ._library import version
from .recorder import Recorder

__all__ = ["Recorder", "version"]
__version__ = "0.1.0"
