"""Models for the tests of foretune.torch, trained on times by a formula: fast, and known in advance."""

import math

import foretune
from foretune.torch import _rows
from foretune.torch._ranking import LIBRARY

TILES = [(m, n, k, stages, warps) for m in (16, 32, 64, 128, 256) for n in (16, 32, 64, 128, 256)
         for k in (32, 64, 128) for stages in (2, 3, 4) for warps in (4, 8)
         if 128 * warps <= m * n <= 32768 and 2 * stages * k * (m + n) <= 200_000]


def model_of(device, library_share, tma_factor, **options):
    """Trains a model for the device. ATen reaches a share of 600 TFLOP/s, tiles fill waves of 132
    blocks; kernels with descriptors take `tma_factor` times as long as those without."""
    dataset = _rows.new_dataset(_rows.Machine(device, "sm_90", {"cores": 132.0}), "training")
    for operation, layout in (("mm", "rcr"), ("addmm", "rcr"), ("bmm", "rrr"), ("mm", "rrr")):
        for size in (256, 512, 1024, 2048, 4096):
            batch = 4 if operation == "bmm" else 1
            milliseconds = 2 * size**3 * batch / 600e9
            rows = [_rows.Row(LIBRARY, milliseconds / library_share + 0.004)]
            for m, n, k, stages, warps in TILES:
                waves = math.ceil(size / m) * math.ceil(size / n) * batch / 132
                used = 0.9 * min(1, m * n / 128**2) ** 0.3 * waves / math.ceil(waves)
                time = milliseconds / used + 0.004 + 0.0001 * (stages + warps)
                rows.append(_rows.Row((1, m, n, k, 8, stages, warps), time))
                if operation != "bmm" and min(m, n, k) >= 64:
                    rows.append(_rows.Row((2, m, n, k, 8, stages, warps), tma_factor * time))
            dataset = _rows.with_rows(dataset, f"gemm op={operation} m={size} n={size} k={size} "
                                      f"batch={batch} dtype=bf16 layout={layout}", rows)
    return foretune.train(dataset, trees=40, folds=0, **options)
