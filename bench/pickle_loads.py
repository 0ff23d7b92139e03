#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A pickle like the .metadata of a large distributed checkpoint: dataclasses in dicts, protocol 4.

	pickle_loads.py make FILE     write one of about 25 MB
	pickle_loads.py time FILE     how fast pickle.loads reads it, in MB/s, with classes that do nothing: as
	                              anybody would call it, and with Python's garbage collector off
"""
import gc
import pickle
import sys
import time
import types
from dataclasses import dataclass
from typing import Any

MODULE = "torch.distributed.checkpoint.metadata"
TENSORS, CHUNKS, ROUNDS = 14400, 12, 5


@dataclass(eq=False)
class MetadataIndex:
	"""A key of a dict: hashed by C code here, by Python code in torch, which is slower."""

	fqn: str
	offset: Any = None
	index: Any = None


@dataclass
class ChunkStorageMetadata:
	offsets: Any
	sizes: Any


@dataclass
class TensorProperties:
	dtype: Any
	layout: Any
	requires_grad: bool
	pin_memory: bool


@dataclass
class TensorStorageMetadata:
	properties: Any
	size: Any
	chunks: Any


@dataclass
class StorageInfo:
	relative_path: str
	offset: int
	length: int


@dataclass
class Metadata:
	state_dict_metadata: Any
	planner_data: Any
	storage_data: Any


class Size(tuple):
	"""torch.Size pickles as a call with one tuple."""

	def __reduce__(self):
		return (Size, (tuple(self),))


CLASSES = [MetadataIndex, ChunkStorageMetadata, TensorProperties, TensorStorageMetadata, StorageInfo,
	Metadata, Size]


def install():
	"""Let the classes go by the names that a real file has."""
	for name in ("torch", "torch.distributed", "torch.distributed.checkpoint", MODULE):
		sys.modules[name] = types.ModuleType(name)
	for cls in CLASSES:
		cls.__module__ = "torch" if cls is Size else MODULE
		setattr(sys.modules[cls.__module__], cls.__name__, cls)


def metadata():
	state, storage, offset = {}, {}, 0
	for t in range(TENSORS):
		name = f"optimizer.state.model.layers.{t // 12}.block.{t % 12}.weight.exp_avg"
		chunks = []
		for c in range(CHUNKS):
			where = Size((c * 512, 0))
			chunks.append(ChunkStorageMetadata(where, Size((512, 4096))))
			storage[MetadataIndex(name, where, c)] = StorageInfo(f"__{c}_0.distcp", offset, 2097152 + t)
			offset += 2097152 + t
		state[name] = TensorStorageMetadata(TensorProperties(1, 0, True, False), Size((512 * CHUNKS, 4096)),
			chunks)
	return Metadata(state, None, storage)


def rate(data):
	best = float("inf")
	for _ in range(ROUNDS):
		start = time.process_time()
		loaded = pickle.loads(data)
		best = min(best, time.process_time() - start)
		del loaded
	return len(data) / best / 1e6


def main():
	install()
	if sys.argv[1] == "make":
		with open(sys.argv[2], "wb") as f:
			pickle.dump(metadata(), f, 4)
		return
	with open(sys.argv[2], "rb") as f:
		data = f.read()
	as_is = rate(data)
	gc.disable()
	print(f"{as_is:.1f} {rate(data):.1f}")


main()
