# SPDX-License-Identifier: MIT
"""Make the real generator states beside this file, and print the table of PCG64 states for test_rng.c.

    python make.py

torch_*.bin are torch.get_rng_state() as it is. python_*.bin and numpy_*.bin are 624 little-endian
words, the position, whether a normal is kept, and the kept double.
"""

import random
import struct
from pathlib import Path

import numpy
import torch

HERE = Path(__file__).parent


def save_torch(name):
    (HERE / f"torch_{name}.bin").write_bytes(torch.get_rng_state().numpy().tobytes())


def save_words(name, words, position, kept):
    data = struct.pack("<626I", *[int(w) for w in words], position, kept is not None)
    (HERE / f"{name}.bin").write_bytes(data + struct.pack("<d", kept or 0.0))


def save_python(name):
    _, words, kept = random.getstate()
    save_words(f"python_{name}", words[:624], words[624], kept)


def save_numpy(name, state):
    save_words(f"numpy_{name}", state["state"]["key"], int(state["state"]["pos"]),
               state["gauss"] if state.get("has_gauss") else None)


def draw(words):
    """A 32-bit range takes one word a value."""
    if words:
        torch.randint(0, 100, (words,))


for words in (0, 1, 624, 625, 1000000):
    torch.manual_seed(42)
    draw(words)
    save_torch(f"42_{words}")
torch.manual_seed(42)
torch.randn(3)  # two pairs from four words each; the fourth value is kept
save_torch("42_randn3")
torch.manual_seed(-1)
draw(5)
save_torch("minus1_5")
torch.manual_seed(2**40 + 5)
draw(700)
save_torch("2e40p5_700")

for words in (0, 1, 624, 1000):
    random.seed(1234)
    for _ in range(words):
        random.getrandbits(32)
    save_python(f"1234_{words}")
random.seed(-1234)
random.gauss(0, 1)  # four words, one value kept
save_python("minus1234_gauss")
random.seed(2**40 + 5)
random.getrandbits(32)
save_python("2e40p5_1")

for words in (0, 1000):
    state = numpy.random.RandomState(1234)
    if words:
        state.randint(0, 2**32, words, dtype=numpy.uint32)
    save_numpy(f"1234_{words}", state.get_state(legacy=False))
state = numpy.random.RandomState(1234)
state.randn(3)
save_numpy("1234_randn3", state.get_state(legacy=False))
bits = numpy.random.MT19937(1234)
save_numpy("sequence1234_0", bits.state)
bits.random_raw(1000)
save_numpy("sequence1234_1000", bits.state)


def row(name, bits, first=None):
    state = bits.state
    number, inc = state["state"]["state"], state["state"]["inc"]
    low = 2**64 - 1
    print(f'\t{{"{name}", {{{number >> 64:#x}, {number & low:#x}}}, {{{inc >> 64:#x}, {inc & low:#x}}}, '
          f'{str(bool(state["has_uint32"])).lower()}, {state["uinteger"]:#x}}},')


for kind in (numpy.random.PCG64, numpy.random.PCG64DXSM):
    bits = kind(42)
    row(f"{kind.__name__} seed 42", bits)
    bits.random_raw(1000)
    row("1000 later", bits)
    row("2^64 + 5 later still", bits.advance(2**64 + 5))
    print("raw then:", [hex(int(v)) for v in bits.random_raw(3)])
generator = numpy.random.default_rng(42)
generator.integers(0, 1 << 32, 3, dtype=numpy.uint32)
row("default_rng(42), three halves", generator.bit_generator)
print("numpy", numpy.__version__, "torch", torch.__version__)
print("python random()", random.Random(42).random().hex(),
      "numpy rand", numpy.random.RandomState(1234).random_sample().hex())
generator = numpy.random.Generator(numpy.random.MT19937(1234))
print("sequence raw", [hex(int(v)) for v in numpy.random.MT19937(1234).random_raw(2)])
