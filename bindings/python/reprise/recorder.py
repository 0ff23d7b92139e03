# SPDX-License-Identifier: MIT
"""The recorder: one per process, one call per optimizer step. Nothing here raises once training runs."""

import array
import atexit
import ctypes
import functools
import inspect
import json
import math
import operator
import os
import struct
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


def on_device(value):
    """The device that would have to be waited for to read a value, or None."""
    device = getattr(value, "device", None)
    kind = getattr(device, "type", "cpu")
    return None if kind == "cpu" else str(device)


def _packed(values):
    """A sequence of Python's integers as an array: half the time of array.array(), and no float passes for one."""
    out = array.array("q")
    try:
        out.frombytes(struct.pack(f"{len(values)}q", *values))
    except struct.error:
        return array.array("q", map(operator.index, values))  # raises what is the matter
    return out


def integers(values):
    """Values as an array of 64-bit integers. TypeError where one is no integer, OverflowError where one is larger.

    What lies in memory as such is copied whole, whatever it is: an array, a NumPy array, a tensor on the host. A
    tensor on a device is refused, since reading it would make the device wait.
    """
    if type(values) in (list, tuple, range):
        return _packed(values)
    if hasattr(values, "detach"):
        device = on_device(values)
        if device:
            raise TypeError(f"a tensor on {device} would have to be waited for: give ids from the host")
        if values.dtype is sys.modules["torch"].int64 and values.is_contiguous():
            return array.array("q", ctypes.string_at(values.data_ptr(), 8 * values.numel()))
        values = values.detach().numpy()
    try:
        view = memoryview(values)
    except (TypeError, ValueError):
        return _packed(list(values))
    if view.itemsize == 8 and view.format in ("q", "l", "Q", "L"):
        out = array.array("q")
        out.frombytes(view.tobytes())
        return out
    return _packed(values.ravel().tolist() if hasattr(values, "ravel") else view.tolist())


def _column(values, code):
    """Values as a contiguous array of the type that `code` (of the array module) names, without a copy where they
    are one."""
    if type(values) is array.array and values.typecode == code:
        owner = values
    elif code == "q":
        owner = integers(values)
    elif hasattr(values, "detach") or hasattr(values, "__array_interface__"):
        if on_device(values):
            raise TypeError(f"a tensor on {values.device} would have to be waited for: give values from the host")
        numpy = sys.modules["numpy"]
        values = values.detach().numpy() if hasattr(values, "detach") else values
        if code != "f" and values.dtype.kind not in "iu":
            raise TypeError(f"integers are needed, not {values.dtype}")
        owner = numpy.ascontiguousarray(values, dtype=_NUMPY[code])
        return _Column(owner.ctypes.data, owner.size, owner)
    else:
        owner = array.array(code, values)
    address, n = owner.buffer_info()
    return _Column(address, n, owner)


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

    def __len__(self):
        return 0


_PENDING_MAX = 1 << 16  # batches without a step, after which somebody forgot it
_AHEAD = (
    "batches arrive in another thread than the one that calls step(), so that it is not known which it used: "
    "watch(loader, ahead=True), and recorder.consume() for each batch that the loop uses"
)


def _each(values, sizes):
    """One value per sample, of batches that have one for all or one for each."""
    return [v for value, n in zip(values, sizes) for v in ([value] * n if isinstance(value, str) else value)]


_NOTHING = bytes(
    lib.Step(
        size=ctypes.sizeof(lib.Step), epoch=-1, source=-1, position=-1, loss=math.nan, lr=math.nan, grad_norm=math.nan
    )
)


def hook(method):
    """A framework's hook: what it finds may not be what it knows, and training goes on whatever it raises. What was
    handed out is then a step that could not be recorded."""

    @functools.wraps(method)
    def guarded(self, *arguments, **how):
        if getattr(self, "_given_up", False):
            return None
        try:
            return method(self, *arguments, **how)
        except Exception as error:  # noqa: BLE001: training goes on whatever it is
            if _environment("REPRISE_REHEARSE", 0) > 0:
                raise  # a rehearsal that trains instead would be a surprise
            why = f"{method.__qualname__}: {type(error).__name__}: {error}"
            if self.recorder is None:
                self._given_up = True
                warnings.warn(f"reprise: nothing is recorded: {why}", RuntimeWarning, stacklevel=2)
            else:
                self.recorder._commit(None, why)
                self.recorder._failed(why)
            return None

    return guarded


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
        self._begin()
        self._keys = keys
        self.rehearse = max(_environment("REPRISE_REHEARSE", 0), 0)
        if self.rehearse:
            kind = "rehearsal"
            folder = os.environ.get("REPRISE_REHEARSE_OUT") or tempfile.mkdtemp(prefix="reprise-rehearsal-")
        self.folder = os.fspath(folder)
        self._place = dict(rank=rank, world_size=world_size, dp=dp, dp_size=dp_size)
        self._sources = self._source_rows(sources)
        self._source_index = {name: i for i, (name, *_) in enumerate(self._sources)}
        self._options = dict(
            folder=_bytes(self.folder),
            run=_bytes(run),
            launch=_bytes(launch),
            kind=_bytes(kind),
            from_step=-1 if from_step is None else int(from_step),
            from_path=_bytes(from_path),
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
        self._take_place()
        try:
            lib.load()
        except OSError as error:
            if self.rehearse:
                raise  # a rehearsal that trains instead would be a surprise
            self._closed = True
            warnings.warn(f"nothing is recorded: {error}", RuntimeWarning, stacklevel=2)
            return
        atexit.register(self._at_exit)

    @classmethod
    def check(cls, folder, how):
        """TypeError for arguments that the constructor will not take: a callback makes its recorder later."""
        if not isinstance(folder, cls):
            inspect.signature(cls).bind(folder, **how)

    def _begin(self):
        """What a recorder is before its first call, in whatever process."""
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._handle = None
        self._closed = False
        self._warned = False
        self._failed_calls = 0
        self._rehearsing = False
        self.why = ""  # the first thing that went wrong
        self._pending = []
        self._watches = []
        self._last_step = None
        self._answered = 0  # calls that the library counted, and of which we know
        self._doing = None  # the step that is being recorded, and its samples

    def _take_place(self):
        """Rank and size as they were given, or as the environment says."""
        given = self._place
        rank = _environment("RANK", 0) if given["rank"] is None else given["rank"]
        world_size = _environment("WORLD_SIZE", 1) if given["world_size"] is None else given["world_size"]
        self._options.update(
            dp=int(rank if given["dp"] is None else given["dp"]),
            dp_size=int(world_size if given["dp_size"] is None else given["dp_size"]),
            rank=int(rank),
            world_size=int(world_size),
        )

    def __getstate__(self):
        """For a process that is spawned with it, and for copies: a recorder that has not begun."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_handle", "_watches")}
        state["_copied"] = self._handle is not None
        return state

    def __setstate__(self, state):
        copied = state.pop("_copied")
        self.__dict__.update(state)
        closed, why = self._closed, self.why
        self._begin()
        self._closed, self.why = closed or copied, why
        if copied and not closed:
            self._failed("a copy of a recorder that has begun records nothing: make one in each process")
        self._take_place()
        if not self._closed:
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
            if self._handle is None:
                self._closed = True
                self._failed("no memory for a recorder: nothing is recorded")
            elif self._counted():  # options that could not be used
                self._status(lib.ARGUMENT)
        return self._handle

    def _counted(self):
        """How many steps the library has answered, or wrong calls."""
        summary = self._filled()
        return summary.steps + summary.lost_steps + summary.wrong_calls

    def _warn(self, what):
        """Say something once, the first time that there is something to say."""
        if self._warned:
            return
        self._warned = True
        try:
            warnings.warn(f"reprise: {what}", RuntimeWarning, stacklevel=4)
        except RuntimeWarning:
            pass  # python -W error: training goes on all the same

    def _failed(self, why):
        self._failed_calls += 1
        self.why = self.why or why
        self._warn(f"could not record: {why}")

    def _status(self, status):
        """Whether a call was acknowledged; the first that was not is a warning."""
        if status == lib.OK:
            return True
        self._answered = self._counted()
        if status in (lib.LOST, lib.ARGUMENT):
            self._failed(self._filled().first_error.decode(errors="replace"))
        return False

    def _is_ours(self):
        """Whether this process is the one that records. One that was forked before the first call is a trainer of
        its own; one that was forked later is counted, and told once."""
        if os.getpid() == self._pid:
            return True
        if self._handle is None:
            pending, watches = self._pending, self._watches
            self._begin()
            self._pending, self._watches = pending, watches
            self._take_place()
            return True
        lib.load().rp_record_sync(self._handle)  # does nothing in a forked child but count
        self._failed("this process was forked after the recorder began, and records nothing: make one in each process")
        return False

    def _guard(self, body, *arguments):
        """Run a call so that nothing it raises reaches training."""
        if self._closed or not self._is_ours():
            return False
        try:
            with self._lock:
                return body(*arguments)
        except Exception as error:  # noqa: BLE001: training goes on whatever it is
            self._failed(f"{type(error).__name__}: {error}")
            return False

    def gap(self, first, last=None, samples=0, reason=None):
        """Steps `first` to `last` consumed samples that could not be recorded: the log says so, and does not pass
        for whole. `samples`: how many, 0 where that is not known."""
        return self._guard(self._gap, first, last, samples, reason)

    def _gap(self, first, last, samples, reason):
        status = self._tell(first, first if last is None else last, samples, reason)
        return status == lib.OK or self._status(status)

    def _tell(self, first, last, samples, reason):
        reason = None if reason is None else str(reason).encode(errors="replace")
        status = lib.load().rp_record_gap(self._open(), int(first), int(last), int(samples), reason)
        self._answered = self._counted()
        return status

    def _lose(self, error):
        """A step is not in the log, unless the call that writes it was made after all: a signal's handler may raise
        between that call and its answer."""
        doing, self._doing = self._doing, None
        if doing is None or self._open() is None:
            return
        if self._counted() > self._answered:
            self._answered = self._counted()
            return
        self._tell(*doing, f"{type(error).__name__}: {error}")

    def _ids(self, ids):
        """Ids as a column; strings are hashed."""
        if type(ids) is not array.array:
            kind = getattr(getattr(ids, "dtype", None), "kind", "")
            if kind in ("U", "S", "O"):
                ids = ids.tolist()
            first = ids[0] if not hasattr(ids, "dtype") and len(ids) else None
            if isinstance(first, (str, bytes)):
                self._keys = self._keys or "text"
                return _column(hash_many(ids), "q")
        self._keys = self._keys or "ids"
        try:
            return _column(ids, "q")
        except OverflowError:
            return _column(array.array("q", map(identity, ids)), "q")

    def _source(self, source):
        if isinstance(source, str) and source not in self._source_index and self._handle is None:
            self._source_index[source] = len(self._sources)
            self._sources.append((source, 0, 0.0, 0.0))
        return self._source_index[source] if isinstance(source, str) else int(source)

    def commit(self, keys, kind="ids", source=None, tokens=None):
        """One micro-batch was handed to the training loop: it belongs to the next step. `keys` are integers."""
        self._commit(keys, kind, source, tokens)

    def _commit(self, keys, kind, source=None, tokens=None, way=None, thread=None):
        if self._closed or (self._handle is not None and os.getpid() != self._pid):
            return
        if keys is None:
            keys = _Unknown(kind)
        elif self._keys is None:
            self._keys = kind
        with self._lock:
            if len(self._pending) >= _PENDING_MAX:
                self._pending = []
                keys = _Unknown(f"{_PENDING_MAX} batches were handed out without a step")
            self._pending.append((keys, source, tokens, way, thread))

    def _withdraw(self, way):
        """What an iterator handed out since the last step was only looked at."""
        with self._lock:
            self._pending = [item for item in self._pending if item[3] is not way]

    def skip(self):
        """What watched loaders handed out since the last step was passed over, as by a loop that skips to its
        place after a resume: it is not consumed."""
        with self._lock:
            self._pending = []

    def consume(self):
        """The loop uses the oldest batch of each loader that is watched with ahead=True."""
        for watched in self._watches:
            watched.consume_one()

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
        """The ids of all that was handed out since the last step; its sources and tokens go into `what`."""
        pending, self._pending = self._pending, []
        if len(pending) == 1 and type(pending[0][0]) is array.array and pending[0][1] is pending[0][2] is None:
            keys, _, _, _, thread = pending[0]
            self._doing[2] = len(keys)
            if thread is not None and thread != threading.get_ident():
                raise RuntimeError(_AHEAD)
            return keys
        self._doing[2] = sum(len(item[0]) for item in pending)
        here = threading.get_ident()
        for keys, _, _, _, thread in pending:
            if type(keys) is _Unknown:
                raise RuntimeError(keys.why)
            if thread is not None and thread != here:
                raise RuntimeError(_AHEAD)
        sizes = [len(item[0]) for item in pending]
        if len(pending) > 1:
            what.setdefault("micro", sizes)
        sources, tokens = [item[1] for item in pending], [item[2] for item in pending]
        if any(source is not None for source in sources):
            names = {source if isinstance(source, str) else None for source in sources}
            what.setdefault("source", sources[0] if len(names) == 1 and None not in names else _each(sources, sizes))
        if all(count is not None for count in tokens):
            what.setdefault("tokens", _each(tokens, sizes))
        if len(pending) == 1:
            return pending[0][0]
        ids = array.array("q")
        for keys, *_ in pending:
            ids.extend(keys if type(keys) is array.array else integers(keys))
        return ids

    def _step(self, step, ids, what):
        if self.rehearse and not self._rehearsing:
            self._refuse_to_train()
        assumed = step if isinstance(step, int) else (self._last_step or 0) + 1
        try:
            self._doing = [assumed, assumed, 0]
            step = int(step)
            self._doing[:2] = step, step
            if ids is None:
                if not self._pending:
                    raise RuntimeError(f"step {step} consumed no batch of a watched loader")
                ids = self._take_pending(what)
            record, _keep = self._record(step, ids, what)
            self._last_step = step
            status = lib.load().rp_record_step(self._open(), ctypes.byref(record))
            if status == lib.OK:
                self._answered += 1
            self._doing = None
        except BaseException as error:
            self._lose(error)
            raise
        return status == lib.OK or self._status(status)

    def _record(self, step, ids, what):
        """The library's struct of a step, and what must live as long as it."""
        record = lib.Step.from_buffer_copy(_NOTHING)
        record.step = step
        keep = [self._ids(ids)]
        record.ids, record.n = keep[0].address, keep[0].n
        if not what:
            return record, keep
        self._doing[2] = record.n
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
            if on_device(value):
                self._warn(f"{name} is on {value.device} and would have to be waited for: left out")
            elif value is not None:
                setattr(record, name, value)
        return record, keep

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

    def _filled(self):
        summary = lib.Summary(size=ctypes.sizeof(lib.Summary))
        if self._handle is not None and os.getpid() == self._pid:
            lib.load().rp_recorder_summary(self._handle, ctypes.byref(summary))
        return summary

    def summary(self):
        """What was recorded and what was lost, as a dictionary."""
        return self._as_dict(self._filled())

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
            # A signal's handler may close what it interrupted.
            self._lose(RuntimeError("the recorder was closed while it recorded this step"))
            if self._pending and self._last_step is None:
                self._warn(f"{len(self._pending)} batches were handed out, and step() was never called")
            handle = self._open()
            self._closed, self._handle, self._pending = True, None, []
            if handle is not None:
                status = lib.load().rp_recorder_close(handle, _bytes(reason), ctypes.byref(summary))
                if status != lib.OK:
                    self._failed(summary.first_error.decode(errors="replace"))
            return self._as_dict(summary)

    def _at_exit(self):
        # A process that never recorded a thing leaves no file behind.
        if self._handle is not None:
            uncaught = getattr(sys, "last_type", None)  # what the interpreter has printed: KeyboardInterrupt, ...
            self.close(uncaught.__name__ if isinstance(uncaught, type) else "exit")
        elif self._pending and not self._closed and os.getpid() == self._pid:
            self._warn(f"{len(self._pending)} batches were handed out, and step() was never called")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close(None if kind is None else kind.__name__)

    def watch(self, loader, **how):
        """Record what a PyTorch DataLoader hands out; see reprise.torch.watch."""
        from . import torch

        return torch.watch(loader, self, **how)
