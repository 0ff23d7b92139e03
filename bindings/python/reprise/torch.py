# SPDX-License-Identifier: MIT
"""Record what PyTorch DataLoaders hand out.

A sample's key is taken where the sample still is one: in the fetcher, in whatever process that runs, before
collation. It travels beside the batch and is committed when the training loop is handed the batch, so that
prefetched and unyielded batches are not consumed. The batch that the loop sees is the one that the loader
made. Works with DataLoader, torchdata's StatefulDataLoader, and loaders prepared by Accelerate, also those
that skip_first_batches() makes anew, since what is watched is the loader's collate function.
"""

import array
import collections
import functools
import importlib
import itertools
import operator
import os
import re
import sys
import threading
import traceback
import warnings
import weakref

from torch.utils.data import DataLoader
from torch.utils.data._utils import fetch as _fetch
from torch.utils.data.dataloader import _BaseDataLoaderIter

from .recorder import hash_many, identity, integers

_watches = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_local = threading.local()


class _Keyed:
    """A batch and the keys of its samples, on their way from the fetcher to the loader's iterator."""

    __slots__ = ("watch", "batch", "keys", "kind", "sources", "tokens")

    def __init__(self, watch, batch, keys, kind, sources, tokens):
        self.watch, self.batch, self.keys, self.kind = watch, batch, keys, kind
        self.sources, self.tokens = sources, tokens

    def __getstate__(self):
        return tuple(getattr(self, name) for name in self.__slots__)

    def __setstate__(self, state):
        for name, value in zip(self.__slots__, state):
            setattr(self, name, value)

    def pin_memory(self, device=None):
        from torch.utils.data._utils.pin_memory import pin_memory

        self.batch = pin_memory(self.batch, device)
        return self


def _content(sample):
    """Bytes that stand for a sample's content, the same in every process; TypeError where there are none."""
    out = []

    def walk(value):
        if hasattr(value, "detach"):
            if value.device.type != "cpu":
                raise TypeError(f"the content of a tensor on {value.device} is not at hand: give key=")
            value = value.detach()
            if value.is_sparse:
                value = value.coalesce()
                walk((tuple(value.shape), value.indices(), value.values()))
                return
            value = value.contiguous()
            out.append(str((value.dtype, tuple(value.shape))).encode())
            out.append(value.view(-1).view(_torch().uint8).numpy().tobytes() if value.numel() else b"")
        elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
            if value.dtype.hasobject:
                walk((value.shape, value.tolist()))
            else:
                out.append(str((value.dtype, value.shape)).encode() + value.tobytes())
        elif hasattr(value, "tobytes"):  # an image of PIL's
            out.append(_name(value) + value.tobytes())
        elif isinstance(value, dict):
            for key in sorted(value, key=str):
                out.append(str(key).encode())
                walk(value[key])
        elif isinstance(value, (list, tuple)):
            out.append(f"{len(value)}".encode())
            for item in value:
                walk(item)
        elif isinstance(value, (bytes, bytearray)):
            out.append(bytes(value))
        elif isinstance(value, (set, frozenset)):
            walk(sorted(value, key=repr))
        elif type(value).__repr__ is object.__repr__:
            if not getattr(value, "__dict__", None):
                raise TypeError(f"the content of a {type(value).__name__} is not known: give key=")
            out.append(type(value).__qualname__.encode())
            walk(vars(value))
        else:
            out.append(_name(value))

    walk(sample)
    return b"\0".join(out)


def _name(value):
    """What an object calls itself, without the address that some add, which is another in each process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)).encode()


def _torch():
    return sys.modules["torch"]


class _WatchedCollate:
    """The loader's own collate function, and what is asked of each sample before it."""

    def __init__(self, collate, watch, key, source, tokens):
        self.collate, self.watch = collate, watch
        self.key, self.source, self.tokens = key, source, tokens

    def __call__(self, samples):
        batch = self.collate(samples)
        # For describe(), which the fetcher calls next, in this thread: others may use the loader too. Set behind the
        # collate function, in which another watched loader may be iterated.
        _local.samples = samples
        return batch

    def __getattr__(self, name):
        # Code that asks a collator for what it has finds it; pickle asks before anything is there.
        if name.startswith("__") or "collate" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.collate, name)

    def describe(self, batch, index, batched):
        """The batch with the keys of the samples that it was made of; `index` is None where there is none.

        This runs in the data path, often in a worker: whatever the user's functions raise goes along with the
        batch, and the step that it belongs to is one that could not be recorded.
        """
        samples = _local.__dict__.pop("samples", None)
        try:
            return self._describe(batch, samples, index, batched)
        except Exception as error:  # noqa: BLE001: training goes on whatever it is
            why = f"a sample's key, source or tokens: {type(error).__name__}: {error}"
            return _Keyed(self.watch, batch, None, why, None, None)

    def _describe(self, batch, samples, index, batched):
        if not batched:
            samples, index = self._unbatched(samples, index)
        keys, kind = self._keys(samples, index)
        sources = self.source if not callable(self.source) else [self.source(sample) for sample in samples]
        tokens = None if self.tokens is None else [int(self.tokens(sample)) for sample in samples]
        return _Keyed(self.watch, batch, keys, kind, sources, tokens)

    def _unbatched(self, sample, index):
        """Without automatic batching, one item of the data set is a batch: of one sample, or, where the sampler
        gives lists of indices, of those."""
        if self.key == "index" and isinstance(index, list) and not callable(self.source) and self.tokens is None:
            return sample, index
        return [sample], None if index is None else [index]

    def _keys(self, samples, index):
        if callable(self.key):
            keys = [self.key(sample) for sample in samples]
        elif self.key == "index" and index is not None:
            keys = index
        else:
            return hash_many([_content(sample) for sample in samples]), "content"
        try:
            return integers(keys), "ids"
        except OverflowError:
            return array.array("q", map(identity, map(operator.index, keys))), "ids"
        except TypeError:
            if any(key is None for key in keys):
                raise TypeError("the key of a sample is None") from None
            return hash_many([key if isinstance(key, (str, bytes)) else _text(key) for key in keys]), "text"


def _text(key):
    """A key that is no integer and no text, as a text: the number that a tensor or a NumPy scalar is."""
    return repr(key.item() if hasattr(key, "item") else key)


def _patch(cls, name, wrap):
    """Replace a method by a wrapper of it, once."""
    method = cls.__dict__.get(name)
    if method is not None and not hasattr(method, "_reprise"):
        wrapper = functools.wraps(method)(wrap(method))
        wrapper._reprise = True
        setattr(cls, name, wrapper)


def _fetch_map(method):
    def fetch(self, index):
        collate = self.collate_fn
        batch = method(self, index)
        if not isinstance(collate, _WatchedCollate):
            return batch
        return collate.describe(batch, index, self.auto_collation)

    return fetch


def _fetch_iterable(method):
    def fetch(self, index):
        collate = self.collate_fn
        batch = method(self, index)
        if not isinstance(collate, _WatchedCollate):
            return batch
        return collate.describe(batch, None, self.auto_collation)

    return fetch


class _Pass:
    """One iterator's way through a loader, which outlives the iterator: that one has workers, and is not kept."""

    finished = False

    def __init__(self, iterator=None):
        self.iterator = None if iterator is None else weakref.ref(iterator)

    def is_left(self):
        """Whether it ended before its end: the iterator is gone, or began anew. One that lives may go on, as in
        zip(loader, loader)."""
        iterator = self.iterator() if self.iterator else None
        return not self.finished and getattr(iterator, "_reprise_pass", None) is not self


def _pass_of(iterator):
    if not hasattr(iterator, "_reprise_pass"):
        iterator._reprise_pass = _Pass(iterator)
    return iterator._reprise_pass


def _next(method):
    def __next__(self):
        try:
            data = method(self)
        except StopIteration:
            _pass_of(self).finished = True
            raise
        if type(data) is not _Keyed:
            return data
        watch = _watches.get(data.watch)
        if watch is not None:
            if watch.recorder.rehearse:
                watch.rehearse(self, method, data)
            watch.deliver(data, self)
        return data.batch

    return __next__


def _reset(method):
    def _reset(self, *arguments, **how):
        # Persistent workers keep their iterator, which begins anew for each pass.
        self.__dict__.pop("_reprise_pass", None)
        return method(self, *arguments, **how)

    return _reset


def _install():
    _patch(_fetch._MapDatasetFetcher, "fetch", _fetch_map)
    _patch(_fetch._IterableDatasetFetcher, "fetch", _fetch_iterable)
    _patch(_BaseDataLoaderIter, "__next__", _next)
    _patch(_BaseDataLoaderIter, "_reset", _reset)


# A worker that is spawned imports this module with the collate function that it is sent.
_install()


class _Collecting:
    """While a loader that looks ahead is asked for a batch, what arrives below it waits in its queue."""

    def __init__(self, queue):
        self.queue = queue

    def __enter__(self):
        stack = _local.__dict__.setdefault("queues", [])
        stack.append(self.queue)

    def __exit__(self, *_):
        _local.queues.pop()


def _commit_all(queue, count):
    for _ in range(min(count, len(queue))):
        data = queue.popleft()
        watch = _watches.get(data.watch)
        if watch is not None:
            watch.commit(data)


def _look_ahead(per_batch):
    """Wrap the __iter__ of a loader that fetches one batch before it hands out the one in front of it."""

    def wrap(method):
        def __iter__(self):
            queue = collections.deque()
            batches = method(self)
            skip = getattr(self, "skip_batches", 0) or 0
            while True:
                with _Collecting(queue):
                    try:
                        batch = next(batches)
                    except StopIteration:
                        return
                n = per_batch(self)
                for _ in range(min(skip * n, len(queue))):
                    queue.popleft()
                skip = 0
                _commit_all(queue, n)
                yield batch

        return __iter__

    return wrap


def _dispatched(loader):
    """Batches that the dispatching process fetches for one batch of all."""
    state = getattr(loader, "state", None)
    return 1 if loader.split_batches else getattr(state, "num_processes", 1)


def _install_accelerate():
    """Accelerate's loaders look one batch ahead. They are patched where Accelerate is or will be in use."""
    if "accelerate" in sys.modules or "transformers" in sys.modules:
        try:
            module = importlib.import_module("accelerate.data_loader")
        except ImportError:
            return
        _patch(module.DataLoaderShard, "__iter__", _look_ahead(lambda loader: 1))
        _patch(module.DataLoaderDispatcher, "__iter__", _look_ahead(_dispatched))


_QUEUE_MAX = 1 << 16


class Watch:
    """A loader under watch: where its keys go."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.number = next(_numbers)
        self.way = _Pass()  # of the iterator that gave the newest batch
        self.queue = None  # where batches wait for somebody to say that they are used
        self.overflown = False
        _watches[self.number] = self

    def deliver(self, data, iterator):
        """A batch arrived in this process: it is consumed, unless somebody above looks ahead."""
        stack = getattr(_local, "queues", None)
        if stack:
            stack[-1].append(data)
            return
        # next(iter(loader)) is how scripts look at a batch: what an iterator gave that was left before its end, and
        # before a step, was not trained on.
        way = _pass_of(iterator)
        if self.way is not way:
            if self.way.is_left():
                self.recorder._withdraw(self.way)
            self.way = way
        self.commit(data)

    def commit(self, data):
        if self.queue is None:
            self._give(data, threading.get_ident())
        elif len(self.queue) < _QUEUE_MAX:
            self.queue.append(data)
        else:
            self.queue.clear()
            self.overflown = True

    def consume_one(self):
        """The oldest batch that waits is used."""
        if self.overflown:
            self.recorder._commit(None, f"{_QUEUE_MAX} batches waited for consume()")
        elif self.queue:
            self._give(self.queue.popleft(), None)

    def _give(self, data, thread):
        self.recorder._commit(data.keys, data.kind, data.sources, data.tokens, self.way, thread)

    def rehearse(self, iterator, method, first):
        """Draw the batches of a rehearsal inside the first next(), write them, and end the process."""
        recorder = self.recorder
        recorder._rehearsing = True
        step = max(recorder._options["from_step"], 0)
        group = max(recorder._options["accumulation"], 1)
        data, drawn = first, 0
        while drawn < recorder.rehearse * group:
            if type(data) is _Keyed:
                self._give(data, None)
            drawn += 1
            if drawn % group == 0:
                step += 1
                recorder.step(step)
            try:
                data = method(iterator)
            except StopIteration:
                break
            except BaseException:  # noqa: BLE001: what a training loop does after it, such as a save, must not happen
                traceback.print_exc()
                recorder.close("failed")
                os._exit(1)
        if drawn % group:
            recorder.step(step + 1)
        summary = recorder.close("rehearsed")
        print(
            f"reprise: rehearsed {summary['steps']} steps, {summary['samples']} samples: {summary['path']}",
            file=sys.stderr,
            flush=True,
        )
        shutdown = getattr(iterator, "_shutdown_workers", None)
        if shutdown:
            shutdown()
        sys.stdout.flush()
        lost = summary["lost_steps"] or summary["failed_calls"]
        if lost:
            print(f"reprise: {lost} steps could not be written: {recorder.why}", file=sys.stderr, flush=True)
        os._exit(1 if lost else 0)


def _innermost(loader):
    """The DataLoader whose collate function counts: Accelerate's loaders hold one."""
    inner = getattr(loader, "base_dataloader", None)
    return loader if inner is None else inner


def _take_over(loader):
    """An iterator that was made before its loader was watched, as torchdata's loaders make one with their first
    state_dict(), and Accelerate asks for that at once: have it use the watched collate function too."""
    iterator = getattr(loader, "_iterator", None)
    fetcher = getattr(iterator, "_dataset_fetcher", None)
    if fetcher is not None:
        fetcher.collate_fn = loader.collate_fn
    elif getattr(loader, "_initial_iter_for_state_dict", False):
        warnings.warn(
            "this loader's workers began before it was watched, and nothing is recorded until they begin again: "
            "watch a loader before Accelerate prepares it",
            RuntimeWarning,
            stacklevel=3,
        )


def watch(loader, recorder, key="index", source=None, tokens=None, ahead=False):
    """Record what `loader` hands out; returns the loader itself, to be iterated as before.

    key: "index" (the data set's index; content for iterable data sets), "content" (hash of the sample), or a
    function of the sample that gives an integer or a string. source: a name for all samples, or a function of
    the sample. tokens: a function of the sample. Functions run where the samples are made, so with workers
    that are spawned they must be picklable. ahead: batches are fetched ahead of the loop that uses them, as by a
    prefetching thread, and the loop says recorder.consume() for each that it uses. Watching a loader twice changes
    nothing; a loader that another recorder watched is this one's from now on.
    """
    _install_accelerate()
    inner = _innermost(loader)
    if not isinstance(inner, DataLoader):
        raise TypeError(f"a DataLoader is needed, not {type(loader).__name__}")
    collate = inner.collate_fn
    if isinstance(collate, _WatchedCollate):
        before = _watches.get(collate.watch)
        if before is not None and before.recorder is recorder:
            before.queue = collections.deque() if ahead else before.queue
            return loader
        collate = collate.collate
    if not callable(key) and key not in ("index", "content"):
        raise ValueError('key is "index", "content" or a function of the sample')
    watched = Watch(recorder)
    watched.queue = collections.deque() if ahead else None
    recorder._watches.append(watched)
    inner.collate_fn = _WatchedCollate(collate, watched.number, key, source, tokens)
    _take_over(inner)
    if key == "content":
        recorder._keys = recorder._keys or "content"
    try:
        size = len(inner.dataset)
    except Exception:  # noqa: BLE001: a data set's own code, and a length is not needed
        size = 0
    recorder.describe(
        size=size,
        workers=inner.num_workers,
        prefetch=inner.prefetch_factor,
        micro_batch=getattr(inner, "batch_size", None),
    )
    return loader
