"""Compiles one template, in a worker of the pool. Needs Triton, but no GPU."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

# In an aligned kernel, leading dimensions are multiples of this many elements (kTritonAlignment in
# foretune/families/triton/triton_config.h).
ALIGNMENT = 8
_POINTERS = ("a", "b", "d", "bias")
_SIZES = ("m", "n", "k", "lda", "ldb", "ldd")
_DISTANCES = ("batch_a", "batch_b", "batch_d")
_TYPES = {"bf16": "bf16", "f16": "fp16", "f32": "fp32", "tf32": "fp32"}
_EPILOGUES = {"none": 0, "bias": 1, "bias_relu": 2, "bias_gelu": 3}


@dataclass(frozen=True)
class CompiledKernel:
    """A record of a file of kernels: machine code and launch parameters, or an error."""

    key: str
    error: str = ""
    function: str = ""
    threads: int = 0
    """Threads per block."""
    shared_bytes: int = 0
    """Shared memory per block."""
    scratch_bytes: int = 0
    """Global memory per block of the grid."""
    image: bytes = b""


def parse_key(key: str) -> dict[str, str]:
    """Returns the parts of a kernel's key (``template=1 dtype=bf16 ...``) by name."""
    return dict(word.split("=", 1) for word in key.split())


def _constants(parts: dict[str, str]) -> dict[str, Any]:
    layout = parts["layout"]
    return {
        "A_BY_COLUMNS": layout[0] == "c",
        "B_BY_COLUMNS": layout[1] == "c",
        "EVEN_K": parts["even_k"] == "1",
        "EPILOGUE": _EPILOGUES[parts["epilogue"]],
        "PRECISION": "tf32" if parts["dtype"] == "tf32" else "ieee",
        **{name.upper(): int(parts[name]) for name in ("block_m", "block_n", "block_k", "group_m")},
    }


def _aligned_sizes(layout: str) -> list[str]:
    """Returns the names of the sizes that equal a leading dimension."""
    return sorted({"m" if layout[0] == "c" else "k", "k" if layout[1] == "c" else "n", "n"})


def compile_kernel(key: str, target: str) -> CompiledKernel:
    """Compiles the kernel of ``key`` for ``target`` (``sm_90``).

    The first line of the compiler's error message becomes the record's ``error``.
    """
    triton_compiler = importlib.import_module("triton.compiler")
    gpu_target = importlib.import_module("triton.backends.compiler").GPUTarget
    templates = importlib.import_module("foretune.triton._kernels").TEMPLATES
    parts = parse_key(key)
    function = templates[int(parts["template"])]
    constants = _constants(parts)
    signature = {name: "*" + _TYPES[parts["dtype"]] for name in _POINTERS}
    signature.update(dict.fromkeys(_SIZES, "i32"))
    signature.update(dict.fromkeys(_DISTANCES, "i64"))
    signature.update(dict.fromkeys(constants, "constexpr"))
    # 16 is safe: pointers come from the driver's allocator, which aligns them to 256 bytes.
    multiples = dict.fromkeys(_POINTERS, 16)
    if parts["aligned"] == "1":
        names = ["lda", "ldb", "ldd", *_DISTANCES, *_aligned_sizes(parts["layout"])]
        multiples.update(dict.fromkeys(names, ALIGNMENT))
    names = list(function.arg_names)
    attributes = {(names.index(name),): [["tt.divisibility", multiple]]
                  for name, multiple in multiples.items()}
    source = triton_compiler.ASTSource(fn=function, signature=signature, constexprs=constants,
                                       attrs=attributes)
    try:
        made = triton_compiler.compile(
            source, target=gpu_target("cuda", int(target.removeprefix("sm_")), 32),
            options={"num_warps": int(parts["num_warps"]), "num_stages": int(parts["num_stages"])})
    except Exception as error:  # noqa: BLE001  whatever a compiler throws is about this kernel
        return CompiledKernel(key, error=f"{type(error).__name__}: {error}".splitlines()[0][:500])
    metadata = made.metadata
    return CompiledKernel(key, function=metadata.name, threads=32 * metadata.num_warps,
                          shared_bytes=metadata.shared,
                          scratch_bytes=metadata.global_scratch_size or 0,
                          image=made.asm["cubin"])
