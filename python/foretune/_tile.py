"""Parameters of Triton's configs, as the library's schemas name them."""

from . import _foretune

_SCHEMAS = _foretune.triton_parameters()

PARAMETERS = tuple(_SCHEMAS["triton-gemm"])
"""The parameters of a tile: block_m, block_n, block_k, group_m, num_stages, num_warps."""
FLAGS = tuple(_SCHEMAS["diode-triton"][len(PARAMETERS):])
"""Flags that follow ``PARAMETERS`` in torch-diode's data; Inductor sets them itself."""
