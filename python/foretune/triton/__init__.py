"""Triton's GEMM kernels: compiled once, measured without Python.

    from foretune.triton import TritonCollector

    collector = TritonCollector(shapeset="shapes.csv", num_shapes=0, dtypes=["bf16"])
    collector.compile("kernels.ftk")                  # all cores; needs Triton, but no GPU
    collector.collect("h200.ftd", "kernels.ftk")      # needs the GPU, but no Triton

Compiling and measuring may happen on different machines. From a shell::

    python -m foretune.triton --shapeset shapes.csv --dtypes bf16 --output kernels.ftk
    foretune collect --family triton --family-option kernels=kernels.ftk --shapeset shapes.csv \\
        --num-shapes 0 --search-space EXHAUSTIVE --search-mode fast --output h200.ftd

A kernel is compiled for a type, a layout, an epilogue and two facts about the sizes (BLOCK_K
divides k; rows begin at a multiple of 8 elements), not for a size: a set of a few hundred shapes
needs hardly more kernels than one of its shapes.

Importing this needs neither Triton nor a GPU.
"""

from __future__ import annotations

from ._collector import CompileSummary, TritonCollector, compile_kernels, kernel_keys
from ._compile import CompiledKernel

__all__ = ["CompileSummary", "CompiledKernel", "TritonCollector", "compile_kernels", "kernel_keys"]
