# SPDX-License-Identifier: MIT
"""libreprise-record through ctypes: include/reprise_record.h, field by field."""

import ctypes
import ctypes.util
import os
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

OK, ARGUMENT, LOST, FORKED, CLOSED = 0, -1, -2, -3, -4
IDS, TEXT, CONTENT = 0, 1, 2
SKIPPED = 1
NAME = "libreprise-record.so"


class Source(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("size", c_uint64), ("weight", c_double), ("epochs", c_double)]


class Options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("folder", c_char_p),
        ("run", c_char_p),
        ("launch", c_char_p),
        ("kind", c_char_p),
        ("from_step", c_int64),
        ("from_path", c_char_p),
        ("dp", c_uint32),
        ("dp_size", c_uint32),
        ("rank", c_uint32),
        ("world_size", c_uint32),
        ("keys", c_uint32),
        ("dataset", c_char_p),
        ("fingerprint", c_char_p),
        ("unit", c_char_p),
        ("order", c_char_p),
        ("sampling", c_char_p),
        ("dataset_size", c_uint64),
        ("repeat", c_double),
        ("sources", POINTER(Source)),
        ("source_count", c_size_t),
        ("seed", c_int64),
        ("has_seed", c_int),
        ("global_batch", c_uint32),
        ("micro_batch", c_uint32),
        ("accumulation", c_uint32),
        ("workers", c_uint32),
        ("prefetch", c_uint32),
        ("drop_last", c_int),
        ("code", c_char_p),
        ("versions", c_char_p),
        ("config", c_char_p),
        ("intent", c_char_p),
    ]


class Step(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("step", c_int64),
        ("epoch", c_int32),
        ("n", c_size_t),
        ("ids", c_void_p),
        ("sources", c_void_p),
        ("tokens", c_void_p),
        ("losses", c_void_p),
        ("micro", c_void_p),
        ("micro_count", c_uint32),
        ("source", c_int32),
        ("step_tokens", c_uint64),
        ("position", c_int64),
        ("loss", c_double),
        ("lr", c_double),
        ("grad_norm", c_double),
        ("flags", c_uint32),
    ]


class Summary(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("steps", c_uint64),
        ("samples", c_uint64),
        ("bytes", c_uint64),
        ("lost_steps", c_uint64),
        ("lost_samples", c_uint64),
        ("wrong_calls", c_uint64),
        ("forked_calls", c_uint64),
        ("first_errno", c_int),
        ("path", c_char * 4096),
        ("first_error", c_char * 240),
    ]


def _candidates():
    """Where the library may be: named by the user, beside the package, in a build folder, installed with it below
    one prefix, or anywhere else."""
    named = os.environ.get("REPRISE_RECORD_LIBRARY")
    if named:
        yield named
        return
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, NAME)
    yield os.path.join(here, "..", "..", "..", "build", "release", NAME)
    yield os.path.join(here, "..", "..", "..", "..", "lib", NAME)
    found = ctypes.util.find_library("reprise-record")
    if found:
        yield found
    yield NAME
    yield NAME + ".0"


def _declare(lib):
    recorder = c_void_p
    for name, result, arguments in (
        ("rp_record_options_init", None, [POINTER(Options), c_size_t]),
        ("rp_record_step_init", None, [POINTER(Step), c_size_t]),
        ("rp_recorder_open", recorder, [POINTER(Options)]),
        ("rp_record_step", c_int, [recorder, POINTER(Step)]),
        ("rp_record_gap", c_int, [recorder, c_int64, c_int64, c_uint64, c_char_p]),
        ("rp_record_checkpoint", c_int, [recorder, c_int64, c_char_p, c_int64, c_char_p]),
        ("rp_record_event", c_int, [recorder, c_char_p, c_int64, c_char_p]),
        ("rp_record_sync", c_int, [recorder]),
        ("rp_recorder_summary", None, [recorder, POINTER(Summary)]),
        ("rp_recorder_close", c_int, [recorder, c_char_p, POINTER(Summary)]),
        ("rp_record_hash", c_uint64, [c_void_p, c_size_t]),
        ("rp_record_hash_many", None, [c_void_p, c_void_p, c_size_t, c_void_p]),
        ("rp_record_version", c_char_p, []),
    ):
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


_loaded = None


def load():
    """The library; OSError with all the places that were tried where there is none."""
    global _loaded
    if _loaded is None:
        tried = []
        for path in _candidates():
            try:
                _loaded = _declare(ctypes.CDLL(path))
                break
            except (OSError, AttributeError) as error:
                tried.append(f"{path}: {error}")
        else:
            raise OSError(
                f"{NAME} was not found; install reprise or set REPRISE_RECORD_LIBRARY\n  " + "\n  ".join(tried)
            )
    return _loaded


def version():
    """The library's name and version."""
    return load().rp_record_version().decode()
