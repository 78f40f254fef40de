"""Which arithmetic a proof is about: products of float32 must be products of float32."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from r2et.certify.graph import Graph
from r2et.certify.operators.linear import Conv
from r2et.errors import require

# As torch.backends names them, where its version has them: each may stand for something coarser.
PRECISIONS = (
    "fp32_precision",
    "mkldnn.fp32_precision",
    "mkldnn.matmul.fp32_precision",
    "mkldnn.conv.fp32_precision",
)
CUDA_PRECISIONS = ("cuda.matmul.fp32_precision", "cudnn.conv.fp32_precision")
EXACT = ("none", "ieee", None)


def check_precision(where: str, x: Tensor) -> None:
    """Refuse TF32, bfloat16 and the like in place of float32."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about devices that are not here
        try:
            precision = torch.get_float32_matmul_precision()
        except RuntimeError:  # set one by one, below
            precision = "highest"
        settings = {name: _setting(name) for name in PRECISIONS + CUDA_PRECISIONS}
    name = "torch.set_float32_matmul_precision"
    require(precision == "highest", where, name, "highest", precision)
    for name in PRECISIONS + (CUDA_PRECISIONS if x.is_cuda else ()):
        value = settings[name]
        require(value in EXACT, where, f"torch.backends.{name}", "ieee or none", value)
    if x.is_cuda:
        rough = torch.backends.cudnn.allow_tf32
        require(not rough, where, "torch.backends.cudnn.allow_tf32", "False", rough)


def check_convolutions(where: str, graph: Graph, x: Tensor) -> None:
    """Refuse Winograd's algorithm, which NNPACK takes where oneDNN is switched off."""
    if x.is_cuda or not any(isinstance(operator, Conv) for operator in graph.operators()):
        return
    onednn = torch._C._has_mkldnn and bool(torch.backends.mkldnn.enabled)
    nnpack = torch._nnpack_available() and torch._C._get_nnpack_enabled()
    name = "torch.backends.mkldnn.enabled"
    require(onednn or not nnpack, where, name, "True (NNPACK rounds otherwise)", False)


def _setting(name: str) -> Any:
    value: Any = torch.backends
    for part in name.split("."):
        value = getattr(value, part, None)
    return value
