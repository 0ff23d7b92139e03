#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the pickles that the unit tests read, one for each protocol. Ran with Python 3.11."""
import collections
import datetime
import enum
import functools
import pickle
import sys
import types

out = sys.argv[1] if len(sys.argv) > 1 else "."
project = sys.modules["project"] = types.ModuleType("project")


def register(cls):
    cls.__module__ = "project"
    setattr(project, cls.__name__, cls)
    return cls


@register
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


@register
class Slots:
    __slots__ = ("a",)


@register
class Names(list):
    pass


@register
class Table(dict):
    pass


@register
class Number(int):
    pass


@register
class Color(enum.Enum):
    RED = 1


@register
class Keywords:
    def __new__(cls, a, *, b):
        return super().__new__(cls)

    def __getnewargs_ex__(self):
        return (1,), {"b": 2}


def values(protocol):
    cycle = [1]
    cycle.append(cycle)
    shared = ["shared"]
    slots = Slots()
    slots.a = 5
    names = Names(["a", "b"])
    names.note = "n"
    table = Table(k="v")
    v = {
        "ints": [0, 1, -1, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -2**31, 2**63 - 1, -2**63],
        "big": [2**63, 2**64 - 1, -2**63 - 1, 2**200, -2**200, 255 << 64],
        "floats": [0.0, -0.0, 1.5, -2.5e-300, float("inf"), float("-inf"), float("nan")],
        "texts": ["", "abc", "\xe9", "\u20ac", "\U0001f600", "\ud800", "a\\b\nc", "\\u0041", "x" * 300],
        "bytes": [b"", b"abc", bytes(range(256)), b"y" * 300],
        "array": bytearray(b"\xffz"),
        "constants": [None, True, False],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "long": list(range(1001)),
        "dict": {i: str(i) for i in range(1001)},
        "set": {7},
        "frozenset": frozenset([8]),
        "empty": [[], {}, set(), frozenset()],
        "complex": 1 + 2j,
        "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
        "default": collections.defaultdict(list, k=[1]),
        "deque": collections.deque([1, 2, 3], 5),
        "point": Point(1, 2),
        "names": names,
        "table": table,
        "number": Number(77),
        "enum": Color.RED,
        "class": Point,
        "date": datetime.datetime(2026, 1, 2, 3, 4, 5),
        "cycle": cycle,
        "shared": [shared, shared],
    }
    if protocol >= 2:
        v["slots"] = slots
        v["keywords"] = Keywords(1, b=2)
        v["partial"] = functools.partial(Point, 1, y=2)
    return v


for protocol in range(6):
    with open(f"{out}/values-p{protocol}.pickle", "wb") as f:
        f.write(pickle.dumps(values(protocol), protocol))
