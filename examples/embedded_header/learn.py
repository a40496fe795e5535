#!/usr/bin/env python3
"""Learns from times.csv which kernel suits which sizes, and writes kernels.ftm."""

import foretune

times = foretune.Dataset.open("times.csv")
# Foretune does not know your kernels: say which numbers matter. The model carries the expressions.
foretune.register_features("blocks", problem_type="gemm", parameters=times, features={
    "log2_m": "log2(m)", "log2_n": "log2(n)", "log2_k": "log2(k)",
    "rows": "rows", "columns": "columns",
    "rows_at_the_edge": "m % rows", "columns_at_the_edge": "n % columns",
    "blocks": "log2(ceil_div(m, rows) * ceil_div(n, columns))"})
# `fast` distils a small model, which is all that the header gets.
model = foretune.train(times, features="blocks", fast=True, seed=1, threads=1)
print(f"mean efficiency of picks for held-out sizes: {100 * model.metrics['mean_efficiency']:.1f} %")
model.save("kernels.ftm")
