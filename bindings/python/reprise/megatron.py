# SPDX-License-Identifier: MIT
"""For training loops in Megatron's style, in which a data iterator feeds a step function.

Megatron's loaders are DataLoaders over a batch sampler of indices into a shuffled data set, so that what is
recorded are those indices: they mean something together with the order, which is said by `order`.

    recorder = reprise.megatron.recorder("record", args, parallel_state)
    if recorder:
        recorder.watch(train_dataloader)
    ...
    iteration += 1
    if recorder:
        recorder.step(iteration)
"""

from .recorder import Recorder


def recorder(folder, args, parallel_state, **how):
    """A recorder on one rank of each data-parallel group (the first tensor, pipeline and context rank), None
    on the others. `args` are Megatron's: seed, iteration, global_batch_size, micro_batch_size."""
    first = (
        parallel_state.get_tensor_model_parallel_rank() == 0
        and parallel_state.get_pipeline_model_parallel_rank() == 0
        and getattr(parallel_state, "get_context_parallel_rank", lambda: 0)() == 0
    )
    if not first:
        return None
    seed = getattr(args, "seed", None)
    what = dict(
        dp=parallel_state.get_data_parallel_rank(),
        dp_size=parallel_state.get_data_parallel_world_size(),
        seed=seed,
        from_step=getattr(args, "iteration", None),
        global_batch=getattr(args, "global_batch_size", 0) or 0,
        micro_batch=getattr(args, "micro_batch_size", 0) or 0,
        unit="window",
        order=f"seed {seed}, {getattr(args, 'train_iters', None)} iterations",
    )
    what.update(how)
    return Recorder(folder, **what)
