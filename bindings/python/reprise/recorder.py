# SPDX-License-Identifier: MIT
"""The recorder: one per process, one call per optimizer step. Nothing here raises once training runs."""

import array
import atexit
import ctypes
import json
import math
import os
import sys
import tempfile
import threading
import warnings

from . import _library as lib

_KEYS = {"ids": lib.IDS, "text": lib.TEXT, "content": lib.CONTENT}
_KINDS = (None, "train", "rehearsal", "reference", "validation")
_SAMPLING = (None, "without", "with", "stream")


def _environment(name, default):
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        return default


def _bytes(text):
    return None if text is None else os.fsencode(os.fspath(text))


def _json(value):
    if value is None or isinstance(value, str):
        return _bytes(value)
    return json.dumps(value, default=str).encode()


class _Column:
    """A contiguous array in memory and what keeps it alive."""

    __slots__ = ("address", "n", "owner")

    def __init__(self, address, n, owner):
        self.address, self.n, self.owner = address, n, owner


_NUMPY = {"q": "int64", "I": "uint32", "H": "uint16", "f": "float32"}


def _column(values, code):
    """Values as a contiguous array of the type that `code` (of the array module) names.

    NumPy arrays of the right type are used where they are; a tensor on a device is refused, since reading it
    would make the device wait.
    """
    if values is None:
        return _Column(None, 0, None)
    if hasattr(values, "is_cuda") or hasattr(values, "detach"):
        if values.device.type != "cpu":
            raise TypeError(f"a tensor on {values.device} would have to be waited for: give ids from the host")
        values = values.detach().numpy()
    if hasattr(values, "__array_interface__") and "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        if code != "f" and values.dtype.kind not in "iu":
            raise TypeError(f"integers are needed, not {values.dtype}")
        owner = numpy.ascontiguousarray(values, dtype=None if values.dtype == numpy.uint64 else _NUMPY[code])
        return _Column(owner.ctypes.data, owner.size, owner)
    try:
        owner = array.array(code, values)
    except OverflowError:
        if code != "q":
            raise
        owner = array.array(code, map(identity, values))
    return _Column(owner.buffer_info()[0], len(owner), owner)


def identity(key):
    """An integer of any size as a signed one of 64 bits: unsigned ones wrap, as in C, larger ones are hashed."""
    if -(1 << 63) <= key < 1 << 63:
        return key
    if 0 <= key < 1 << 64:
        return key - (1 << 64)
    return hash_many([str(key)])[0]


def hash_many(items):
    """XXH3-64 of strings or bytes, as signed 64-bit integers in an array."""
    data = [item.encode() if isinstance(item, str) else item for item in items]
    if not all(isinstance(item, bytes) for item in data):
        raise TypeError("strings or bytes are needed")
    offsets = array.array("Q", [0])
    total = 0
    for item in data:
        total += len(item)
        offsets.append(total)
    keys = array.array("q", bytes(8 * len(data)))
    joined = b"".join(data)
    lib.load().rp_record_hash_many(joined, offsets.buffer_info()[0], len(data), keys.buffer_info()[0])
    return keys


class _Unknown:
    """In place of a batch's keys: why there are none."""

    def __init__(self, why):
        self.why = why


class Recorder:
    """Write down what each step of this process consumes, below `folder`.

    A launch makes a folder of its own there and every process its own file, so that ranks, restarts and
    killed jobs need no coordination. `rank` and `world_size` default to RANK and WORLD_SIZE of the
    environment, `dp` and `dp_size` (the data-parallel ones) to those; with tensor or pipeline parallelism
    give them, and record on one rank of each data-parallel group.

    Whatever happens to the disk, no method raises or prints once training runs; `summary()` tells what was
    lost, and the first loss is a RuntimeWarning.
    """

    def __init__(
        self,
        folder,
        *,
        run=None,
        launch=None,
        kind=None,
        from_step=None,
        from_path=None,
        dp=None,
        dp_size=None,
        rank=None,
        world_size=None,
        keys=None,
        dataset=None,
        fingerprint=None,
        unit=None,
        order=None,
        sampling=None,
        size=0,
        repeat=0.0,
        sources=None,
        seed=None,
        global_batch=0,
        micro_batch=0,
        accumulation=0,
        workers=0,
        prefetch=0,
        drop_last=None,
        code=None,
        versions=None,
        config=None,
        intent=None,
    ):
        if keys is not None and keys not in _KEYS:
            raise ValueError(f"keys must be one of {', '.join(_KEYS)}")
        if kind not in _KINDS or sampling not in _SAMPLING:
            raise ValueError("kind or sampling is not one of the known words")
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._handle = None
        self._closed = False
        self._warned = False
        self._failed_calls = 0
        self._rehearsing = False
        self.why = ""  # the first thing that went wrong
        self._keys = keys
        self._pending = []
        self._watches = []
        self._last_step = None
        self.rehearse = max(_environment("REPRISE_REHEARSE", 0), 0)
        if self.rehearse:
            kind = "rehearsal"
            folder = os.environ.get("REPRISE_REHEARSE_OUT") or tempfile.mkdtemp(prefix="reprise-rehearsal-")
        self.folder = os.fspath(folder)
        rank = _environment("RANK", 0) if rank is None else rank
        world_size = _environment("WORLD_SIZE", 1) if world_size is None else world_size
        self._sources = self._source_rows(sources)
        self._source_index = {name: i for i, (name, *_) in enumerate(self._sources)}
        self._options = dict(
            folder=_bytes(self.folder),
            run=_bytes(run),
            launch=_bytes(launch),
            kind=_bytes(kind),
            from_step=-1 if from_step is None else int(from_step),
            from_path=_bytes(from_path),
            dp=int(rank if dp is None else dp),
            dp_size=int(world_size if dp_size is None else dp_size),
            rank=int(rank),
            world_size=int(world_size),
            dataset=_bytes(dataset),
            fingerprint=_bytes(fingerprint),
            unit=_bytes(unit),
            order=_bytes(order),
            sampling=_bytes(sampling),
            dataset_size=int(size),
            repeat=float(repeat),
            seed=0 if seed is None else int(seed),
            has_seed=int(seed is not None),
            global_batch=int(global_batch),
            micro_batch=int(micro_batch),
            accumulation=int(accumulation),
            workers=int(workers),
            prefetch=int(prefetch),
            drop_last=0 if drop_last is None else 1 if drop_last else -1,
            code=_bytes(code),
            versions=_json(versions),
            config=_json(config),
            intent=_json(intent),
        )
        try:
            lib.load()
        except OSError as error:
            if self.rehearse:
                raise  # a rehearsal that trains instead would be a surprise
            self._closed = True
            warnings.warn(f"nothing is recorded: {error}", RuntimeWarning, stacklevel=2)
            return
        atexit.register(self._at_exit)

    @staticmethod
    def _source_rows(sources):
        """[(name, size, weight, epochs)] from names, or from a mapping of names to size, weight, epochs."""
        if not sources:
            return []
        if not hasattr(sources, "items"):
            sources = {name: {} for name in sources}
        return [
            (name, int(row.get("size", 0)), float(row.get("weight", 0)), float(row.get("epochs", 0)))
            for name, row in sources.items()
        ]

    @property
    def closed(self):
        """Whether nothing is recorded any more."""
        return self._closed

    def describe(self, **what):
        """Say more of the attempt before its first step: any of the constructor's arguments that are plain
        numbers or texts (from_step, seed, workers, ...). What was given before stays."""
        with self._lock:
            if self._handle is not None:
                return
            for name, value in what.items():
                if name == "seed":
                    if not self._options["has_seed"] and value is not None:
                        self._options.update(seed=int(value), has_seed=1)
                elif name == "from_step":
                    if self._options["from_step"] < 0 and value is not None:
                        self._options["from_step"] = int(value)
                elif name == "size":
                    self._options["dataset_size"] = self._options["dataset_size"] or int(value or 0)
                elif name in ("versions", "config", "intent"):
                    self._options[name] = self._options[name] or _json(value)
                elif not self._options[name] and value is not None:
                    self._options[name] = _bytes(value) if isinstance(value, str) else int(value)

    def _open(self):
        """The handle, made with the first call that needs one: by then it is known what the keys are."""
        if self._handle is None and not self._closed:
            library = lib.load()
            # Not by rp_record_options_init: that of a newer library may fill more than there is here.
            options = lib.Options(size=ctypes.sizeof(lib.Options))
            for name, value in self._options.items():
                setattr(options, name, value)
            options.keys = _KEYS[self._keys or "ids"]
            rows = [lib.Source(_bytes(name), size, weight, epochs) for name, size, weight, epochs in self._sources]
            if rows:
                options.sources = (lib.Source * len(rows))(*rows)
                options.source_count = len(rows)
            self._handle = library.rp_recorder_open(ctypes.byref(options))
            self._closed = self._handle is None
        return self._handle

    def _failed(self, why):
        self._failed_calls += 1
        if not self._warned:
            self._warned = True
            self.why = why
            try:
                warnings.warn(f"reprise could not record: {why}", RuntimeWarning, stacklevel=4)
            except RuntimeWarning:
                pass  # python -W error: training goes on all the same

    def _status(self, status):
        """Whether a call was acknowledged; the first that was not is a warning."""
        if status == lib.OK:
            return True
        if status in (lib.LOST, lib.ARGUMENT):
            self._failed(self.summary()["first_error"])
        return False

    def _guard(self, body, *arguments):
        """Run a call so that nothing it raises reaches training."""
        if self._closed:
            return False
        if os.getpid() != self._pid:
            if self._handle is not None:
                lib.load().rp_record_sync(self._handle)  # does nothing in a forked child but count
            return False
        try:
            with self._lock:
                return body(*arguments)
        except Exception as error:  # noqa: BLE001: training goes on whatever it is
            self._failed(f"{type(error).__name__}: {error}")
            return False

    def _ids(self, ids):
        """Ids as a column; strings are hashed."""
        if hasattr(ids, "dtype") and getattr(ids.dtype, "kind", "") in ("U", "S", "O"):
            ids = ids.tolist()
        first = ids[0] if not hasattr(ids, "dtype") and len(ids) else None
        if isinstance(first, (str, bytes)):
            if self._keys is None:
                self._keys = "text"
            return _column(hash_many(ids), "q")
        if self._keys is None:
            self._keys = "ids"
        return _column(ids, "q")

    def _source(self, source):
        if isinstance(source, str) and source not in self._source_index and self._handle is None:
            self._source_index[source] = len(self._sources)
            self._sources.append((source, 0, 0.0, 0.0))
        return self._source_index[source] if isinstance(source, str) else int(source)

    def commit(self, keys, kind="ids", source=None, tokens=None):
        """One micro-batch was handed to the training loop: it belongs to the next step. `keys` are integers."""
        self._commit(keys, kind, source, tokens, None)

    def _commit(self, keys, kind, source, tokens, way):
        if self._closed:
            return
        if keys is None:
            keys = _Unknown(kind)
        elif self._keys is None:
            self._keys = kind
        self._pending.append((keys, source, tokens, way))

    def _withdraw(self, way):
        """What an iterator handed out since the last step was only looked at."""
        self._pending = [item for item in self._pending if item[3] is not way]

    def skip(self):
        """What watched loaders handed out since the last step was passed over, as by a loop that skips to its
        place after a resume: it is not consumed."""
        self._pending.clear()

    def _refuse_to_train(self):
        """Under REPRISE_REHEARSE the first watched batch ends the process: a step means that none is watched."""
        print("reprise: REPRISE_REHEARSE needs a watched loader, and training began without one", file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)

    def step(self, step, ids=None, **what):
        """The update that takes the counter from step - 1 to `step` consumed `ids`, or, without them, all
        that watched loaders handed out since the last step.

        Optional: source (a name for all, or one per sample), tokens (a number for all, or one per sample),
        losses (one per sample), micro (sizes of the micro-batches), epoch, position, loss, lr, grad_norm,
        applied (False: the update was skipped). Returns whether it was written.
        """
        return self._guard(self._step, step, ids, what)

    def _take_pending(self, what):
        pending, self._pending = self._pending, []
        for keys, *_ in pending:
            if isinstance(keys, _Unknown):
                raise RuntimeError(f"a sample's key, source or tokens: {keys.why}")
        ids = array.array("q")
        sources, tokens = [], []
        for keys, source, count, _ in pending:
            ids.extend(keys)
            sources.append(source)
            tokens.append(count)
        if len(pending) > 1 and "micro" not in what:
            what["micro"] = [len(item[0]) for item in pending]
        if any(source is not None for source in sources) and "source" not in what:
            if len({source for source in sources if isinstance(source, str)}) == 1 and all(
                isinstance(source, str) for source in sources
            ):
                what["source"] = sources[0]
            else:
                what["source"] = [
                    name
                    for keys, source, _, _ in pending
                    for name in ([source] * len(keys) if isinstance(source, str) else source)
                ]
        if pending and all(count is not None for count in tokens) and "tokens" not in what:
            what["tokens"] = [n for counts in tokens for n in counts]
        return ids

    def _step(self, step, ids, what):
        if self.rehearse and not self._rehearsing:
            self._refuse_to_train()
        if ids is None:
            if not self._pending:
                raise RuntimeError(f"step {step} consumed no batch of a watched loader")
            ids = self._take_pending(what)
        record = lib.Step(size=ctypes.sizeof(lib.Step), step=int(step), epoch=-1, source=-1, position=-1)
        record.loss = record.lr = record.grad_norm = math.nan
        keep = [self._ids(ids)]
        record.ids, record.n = keep[0].address, keep[0].n
        source, tokens = what.pop("source", None), what.pop("tokens", None)
        if isinstance(source, (str, int)):
            record.source = self._source(source)
        elif source is not None:
            keep.append(self._per_sample(array.array("H", [self._source(s) for s in source]), "H", record.n))
            record.sources = keep[-1].address
        if isinstance(tokens, int):
            record.step_tokens = tokens
        elif tokens is not None:
            keep.append(self._per_sample(tokens, "I", record.n))
            record.tokens = keep[-1].address
        if "losses" in what:
            keep.append(self._per_sample(what.pop("losses"), "f", record.n))
            record.losses = keep[-1].address
        if "micro" in what:
            keep.append(_column(what.pop("micro"), "I"))
            record.micro, record.micro_count = keep[-1].address, keep[-1].n
        if not what.pop("applied", True):
            record.flags = lib.SKIPPED
        for name, value in what.items():
            if name not in ("epoch", "position", "loss", "lr", "grad_norm"):
                raise TypeError(f"step() does not know {name}")
            if value is not None:
                setattr(record, name, value)
        self._last_step = int(step)
        return self._status(lib.load().rp_record_step(self._open(), ctypes.byref(record)))

    @staticmethod
    def _per_sample(values, code, n):
        column = _column(values, code)
        if column.n != n:
            raise ValueError(f"{column.n} values for {n} samples")
        return column

    def checkpoint(self, step, path=None, position=None, digest=None):
        """A checkpoint was saved after `step`: all steps up to it are made to last first."""
        return self._guard(self._checkpoint, step, path, position, digest)

    def _checkpoint(self, step, path, position, digest):
        return self._status(
            lib.load().rp_record_checkpoint(
                self._open(), int(step), _bytes(path), -1 if position is None else int(position), _bytes(digest)
            )
        )

    def event(self, kind, step, **what):
        """Anything else worth a line in the log."""
        return self._guard(
            lambda: self._status(lib.load().rp_record_event(self._open(), _bytes(kind), int(step), _json(what)))
        )

    def sync(self):
        """Make all that was recorded last through the loss of the machine."""
        return self._guard(lambda: self._status(lib.load().rp_record_sync(self._open())))

    def summary(self):
        """What was recorded and what was lost, as a dictionary."""
        summary = lib.Summary(size=ctypes.sizeof(lib.Summary))
        if self._handle is not None and os.getpid() == self._pid:
            lib.load().rp_recorder_summary(self._handle, ctypes.byref(summary))
        return self._as_dict(summary)

    def _as_dict(self, summary):
        out = {name: getattr(summary, name) for name, _ in lib.Summary._fields_ if name != "size"}
        for name in ("path", "first_error"):
            out[name] = out[name].decode(errors="replace")
        out["failed_calls"] = self._failed_calls
        return out

    def close(self, reason=None):
        """End the attempt; the summary. A recorder that is never closed is ended when Python exits."""
        if os.getpid() != self._pid:  # another thread of the parent may have held the lock as it forked
            return self.summary()
        with self._lock:
            if self._closed:
                return self.summary()
            summary = lib.Summary(size=ctypes.sizeof(lib.Summary))
            handle = self._open()
            self._closed, self._handle = True, None
            if handle is not None:
                status = lib.load().rp_recorder_close(handle, _bytes(reason), ctypes.byref(summary))
                if status != lib.OK:
                    self._failed(summary.first_error.decode(errors="replace"))
            return self._as_dict(summary)

    def _at_exit(self):
        # A process that never recorded a thing leaves no file behind.
        if self._handle is not None:
            self.close("exit")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close(None if kind is None else kind.__name__)

    def watch(self, loader, **how):
        """Record what a PyTorch DataLoader hands out; see reprise.torch.watch."""
        from . import torch

        return torch.watch(loader, self, **how)
