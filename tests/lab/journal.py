# SPDX-License-Identifier: MIT
"""A second opinion on journals: read them by src/base/journal.h with nothing but struct. No hash is checked."""

import json
import pathlib
import struct

OPEN, STEP, EVENT, GAP, CLOSE = 1, 2, 3, 4, 5
KEYS, SOURCES, TOKENS = 1, 2, 3
MASK = (1 << 64) - 1


def integers(data, encoding, width, n):
    def at(i, w):
        return int.from_bytes(data[i : i + w], "little")

    if encoding == 1:
        return [at(0, width)] * n
    if encoding == 2:
        return [(at(0, 8) + i * at(8, 8)) & MASK for i in range(n)]
    if encoding == 3:
        out = [at(0, 8)]
        for i in range(n - 1):
            z = at(8 + i * width, width)
            out.append((out[-1] + (z >> 1 ^ -(z & 1))) & MASK)
        return out
    return [at(i * width, width) for i in range(n)]


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def blocks(path):
    data = pathlib.Path(path).read_bytes()
    at = 16
    while at + 48 <= len(data):
        magic, kind, _, _, _, payload, rows = struct.unpack_from("<IBBHQII", data, at)
        assert magic == 0x4B4A5052, path
        yield kind, rows, data[at + 48 : at + 48 + payload]
        at += 48 + (payload + 7 & ~7)


def steps(path):
    """[(step, epoch, [key...])] of one file, in order."""
    out = []
    for kind, rows, p in blocks(path):
        if kind != STEP:
            continue
        step, _, _, _, _, epoch, _, columns = struct.unpack_from("<qQQQQiHH", p)
        at, keys = 48, []
        for _ in range(columns):
            name, encoding, width, _, size = struct.unpack_from("<BBBBI", p, at)
            if name == KEYS:
                keys = [signed(v) for v in integers(p[at + 8 : at + 8 + size], encoding, width, rows)]
            at += 8 + size
        out.append((step, epoch, keys))
    return out


def objects(path, kind):
    return [json.loads(p) for k, _, p in blocks(path) if k == kind]


def gaps(path):
    """[(first step, last step, rows, words)] of one file."""
    out = []
    for kind, _, p in blocks(path):
        if kind == GAP:
            first, last, rows, _, _ = struct.unpack_from("<qqQIi", p)
            out.append((first, last, rows, p[32:].decode()))
    return out


def files(folder):
    """The journals below a folder, oldest first."""
    found = pathlib.Path(folder).rglob("*.rpj")
    return sorted(found, key=lambda f: (objects(f, OPEN)[0]["time_ns"], f.name))
