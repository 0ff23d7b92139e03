#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the torch files that the unit tests read. Ran with PyTorch 2.13.0 (CPU) and NumPy 2.4.6."""
import collections
import pickle
import sys
import warnings
import zipfile

import numpy as np
import torch

warnings.simplefilter("ignore")
torch.manual_seed(7)
out = sys.argv[1] if len(sys.argv) > 1 else "."


def tensors():
    base = torch.arange(60, dtype=torch.float32)
    d = collections.OrderedDict()
    for dtype in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                  "float8_e4m3fnuz", "float8_e5m2fnuz"):
        d[dtype] = (torch.arange(6, dtype=torch.float32).reshape(2, 3) - 2.5).to(getattr(torch, dtype))
    d["float8_e8m0fnu"] = torch.tensor([1.0, 2.0, 0.5]).to(torch.float8_e8m0fnu)
    for dtype in ("int8", "int16", "int32", "int64"):
        d[dtype] = torch.tensor([-3, 0, 100]).to(getattr(torch, dtype))
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        d[dtype] = torch.tensor([0, 3, 200]).to(getattr(torch, dtype))
    d["bool"] = torch.tensor([True, False, True])
    d["complex64"] = torch.tensor([1 + 2j])
    d["complex128"] = torch.tensor([1 + 2j], dtype=torch.complex128)
    d["conj"] = torch.tensor([1 + 2j]).conj()
    d["neg"] = torch.tensor([1 + 2j]).conj().imag
    d["scalar"] = torch.tensor(3.25)
    d["empty"] = torch.zeros(0, 4)
    d["view"] = base[10:20]
    d["strided"] = base[::7]
    d["transposed"] = base.view(6, 10).t()
    d["block"] = base.view(6, 10)[1:4, 2:7]
    d["expanded"] = torch.tensor([1.0, 2.0]).unsqueeze(1).expand(2, 4)
    d["shared"] = d["view"]
    d["parameter"] = torch.nn.Parameter(torch.tensor([1.5]))
    frozen = torch.nn.Parameter(torch.tensor([2.5]), requires_grad=False)
    frozen.note = "frozen"
    d["parameter with state"] = frozen
    noted = torch.tensor([4.5])
    noted.note = {"size": torch.Size([7])}
    d["tensor with state"] = noted
    return d


def arrays():
    return {
        "f8": np.arange(4, dtype="<f8") / 4, "f4": np.arange(6, dtype="<f4").reshape(2, 3),
        "big": np.arange(4, dtype=">i4"), "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "bool": np.array([True, False]), "f2": np.arange(3, dtype="f2"), "zero": np.array(4.5),
        "objects": np.array([1, "a", None], dtype=object), "empty": np.zeros((0, 3)),
        "text": np.array(["ab", "c"]), "record": np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
        "c16": np.array([1 + 2j]),
    }


def scalars():
    return {"f8": np.float64(2.5), "f4": np.float32(1.5), "i8": np.int64(-7),
            "u8": np.uint64(2**63 + 1), "b": np.bool_(True), "f2": np.float16(0.5)}


def everything(meta=True):
    d = {"tensors": tensors(), "arrays": arrays(), "scalars": scalars(), "size": torch.Size([3, 4]),
         "cpu": torch.device("cpu"), "cuda": torch.device("cuda", 1), "dtype": torch.bfloat16,
         "storage": torch.arange(6.0).untyped_storage()}
    if meta:
        d["tensors"]["meta"] = torch.empty(5, 2, device="meta")
    return d


torch.save(everything(), f"{out}/all-p2.pt")
torch.save(everything(), f"{out}/all-p4.pt", pickle_protocol=4)
torch.save(everything(), f"{out}/legacy.pt", _use_new_zipfile_serialization=False)
for protocol in (0, 2, 5):
    with open(f"{out}/plain-p{protocol}.pkl", "wb") as f:
        pickle.dump(everything(meta=False), f, protocol=protocol)
sparse = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), check_invariants=True)
torch.save({"quantized": torch.quantize_per_tensor(torch.tensor([0.1, 0.5]), 0.1, 3, torch.quint8),
            "sparse": sparse, "csr": torch.eye(2).to_sparse_csr()}, f"{out}/odd.pt")
small = {"weight": torch.arange(8, dtype=torch.float32), "bias": torch.ones(2), "step": 3}
torch.save(small, f"{out}/small.pt")
torch.save(small, f"{out}/small-legacy.pt", _use_new_zipfile_serialization=False)
torch.save({"weight": torch.zeros(65536), "same": torch.zeros(1)}, f"{out}/cut.pt")
with open(f"{out}/cut.pt", "r+b") as f:
    f.truncate(1000)
with zipfile.ZipFile(f"{out}/small.pt") as stored:
    with zipfile.ZipFile(f"{out}/deflated.pt", "w", zipfile.ZIP_DEFLATED) as deflated:
        for name in stored.namelist():
            deflated.writestr(name, stored.read(name))
torch.serialization.set_crc32_options(False)
torch.save(small, f"{out}/nocrc.pt")
torch.serialization.set_crc32_options(True)
torch.jit.script(torch.nn.Linear(1, 1)).save(f"{out}/script.pt")
