"""Names of Composable Kernel's kernels, of mappings that may hold the parts of a name only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Our labels that a name spells differently.
_DTYPES = {"f32": "fp32", "f16": "fp16", "f8e4m3": "fp8", "f8e5m2": "bf8", "i8": "int8"}
_DIRECTIONS = {"backward_data": "bwd_data", "backward_weight": "bwd_weight"}


def kernel_name(kernel: Mapping[str, Any], problem: str) -> str:
    """Returns the name of a kernel: that which the mapping has, else the one that its parts make for
    a problem, given as canonical text. "" when parts are missing."""
    for key in ("kernel_name", "kernel", "name"):
        if key in kernel:
            return str(kernel[key])
    fields = dict(word.split("=", 1) for word in problem.split()[1:])
    dtype = _DTYPES.get(fields.get("dtype", ""), fields.get("dtype", ""))
    if problem.startswith("conv"):
        return _conv_name(kernel, fields, dtype)
    return _gemm_name(kernel, fields, dtype)


def _conv_name(kernel: Mapping[str, Any], fields: Mapping[str, str], dtype: str) -> str:
    if not {"block_size", "gemm_m_per_block", "gemm_n_per_block", "pipeline"} <= kernel.keys():
        return ""
    operation = fields.get("op", "forward")
    is_3d = any(int(fields.get(size, "1")) > 1 for size in ("di", "z"))
    parts = ["grouped_conv", _DIRECTIONS.get(operation, operation), dtype, "3d" if is_3d else "2d",
             f"{int(kernel['block_size'])}x{int(kernel['gemm_m_per_block'])}"
             f"x{int(kernel['gemm_n_per_block'])}", str(kernel["pipeline"])]
    if kernel.get("wave_mode") in ("intrawave", "interwave"):
        parts.append(str(kernel["wave_mode"]))
    for flag in ("dsb", "si"):
        if int(kernel.get(f"has_{flag}", 0)):
            parts.append(flag)
    return "_".join(parts)


def _gemm_name(kernel: Mapping[str, Any], fields: Mapping[str, str], dtype: str) -> str:
    sizes = ("tile", "warp", "warp_tile")
    if not {f"{size}_{side}" for size in sizes for side in "mnk"} <= kernel.keys():
        return ""
    parts = ["gemm_universal", dtype, fields.get("layout", "rcr"),
             str(kernel.get("pipeline", "compv4")), str(kernel.get("epilogue", "cshuffle")),
             str(kernel.get("scheduler", "intrawave"))]
    parts += [str(bool(kernel.get(flag, False))) for flag in ("pad_m", "pad_n", "pad_k",
                                                              "persistent")]
    parts += ["x".join(str(int(kernel[f"{size}_{side}"])) for side in "mnk") for size in sizes]
    widths = [int(kernel.get(f"vec_{side}", 0) or 0) for side in "abc"]
    if any(widths):
        parts.append("vec" + "_".join(map(str, widths)))
    return "_".join(parts)
