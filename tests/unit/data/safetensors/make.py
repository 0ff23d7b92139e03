# SPDX-License-Identifier: MIT
"""Write the files of this folder: python3 make.py, with torch 2.13.0 and safetensors 0.8.0."""

import os

import torch
from safetensors.torch import save_file

here = os.path.dirname(os.path.abspath(__file__))


def numbers(dtype, *shape):
    count = 1
    for size in shape:
        count *= size
    return torch.arange(count, dtype=torch.float64).reshape(shape).to(dtype)


# A small model as transformers writes it.
generator = torch.Generator().manual_seed(1)
model = {
    f"model.layers.{i}.{name}.weight": torch.randn(shape, generator=generator).to(torch.bfloat16)
    for i in range(3)
    for name, shape in (("attn", (8, 8)), ("mlp", (16, 8)), ("norm", (8,)))
}
model["model.embed.weight"] = numbers(torch.float32, 5, 8)
save_file(model, os.path.join(here, "model.safetensors"), metadata={"format": "pt"})

# Every dtype that the library writes.
dtypes = {
    "bool": torch.tensor([[True, False, True]]),
    "scalar": torch.tensor(-2.5, dtype=torch.float64),
    "empty": torch.empty(0, 7),
    "complex64": torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64),
    "float4": torch.arange(6, dtype=torch.uint8).reshape(2, 3).view(torch.float4_e2m1fn_x2),
}
for name in (
    "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
).split():
    dtypes[name] = numbers(getattr(torch, name), 2, 3)
save_file(dtypes, os.path.join(here, "dtypes.safetensors"))

# No tensor at all, and names that JSON escapes.
save_file({}, os.path.join(here, "nothing.safetensors"))
save_file(
    {'a"b\\c\n': numbers(torch.int32, 2), "größe": numbers(torch.int32, 3), "": numbers(torch.int32, 1)},
    os.path.join(here, "names.safetensors"),
    metadata={"kéy": "välue", "empty": ""},
)
