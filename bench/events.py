#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An event file of many scalars, and how fast TensorBoard's own loaders read it: events.py make FILE EVENTS;
events.py time FILE prints MB/s of processor time of EventAccumulator (keeping all scalars) and of EventFileLoader
alone, and the number of losses. Needs tensorboard."""
import os
import sys
import time

from tensorboard.backend.event_processing import event_accumulator, event_file_loader
from tensorboard.compat.proto import event_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

TAGS = ("train/loss", "train/grad_norm", "train/learning_rate", "train/epoch")


def make(path, events):
    with open(path, "wb") as f:
        writer = RecordWriter(f)
        writer.write(event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
        for i in range(events):
            step = i // len(TAGS) + 1
            event = event_pb2.Event(wall_time=1.7e9 + step, step=step)
            event.summary.value.add(tag=TAGS[i % len(TAGS)], simple_value=2.0 + 1.0 / step)
            writer.write(event.SerializeToString())


def measure(run):
    start = time.process_time()
    count = run()
    return time.process_time() - start, count


def accumulate(path):
    accumulator = event_accumulator.EventAccumulator(path, size_guidance={event_accumulator.SCALARS: 0})
    accumulator.Reload()
    return len(accumulator.Scalars("train/loss"))


def load(path):
    return sum(1 for e in event_file_loader.EventFileLoader(path).Load()
               if e.HasField("summary") and e.summary.value[0].tag == "train/loss")


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
        return
    size = os.path.getsize(sys.argv[2])
    slow, count = measure(lambda: accumulate(sys.argv[2]))
    fast, again = measure(lambda: load(sys.argv[2]))
    assert count == again
    print(f"{size / slow / 1e6:.2f} {size / fast / 1e6:.2f} {count}")


main()
