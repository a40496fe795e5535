#!/usr/bin/env bash
# Makes foretune/gpu/kernels/check.txt (PTX, compiled by the driver when a device is opened) of
# check.cu. Needs CUDA's nvcc, which building does not: run it when the kernels change.
set -euo pipefail
cd "$(dirname "$0")/../foretune/gpu/kernels"
nvcc -ptx -arch=compute_75 -O3 check.cu -o check.txt
# What nvcc writes is its own version; nothing in here needs more than that of the first drivers for
# compute capability 8.0.
sed -i -e 's/^\.version .*/.version 7.0/' -e '/^\/\//d' check.txt
