#!/usr/bin/env bash
# Makes foretune/cuda/kernels/check.txt (PTX, which the driver compiles when a device is opened)
# from check.cu. Needs CUDA's nvcc, which a build does not need: run it when the kernels change.
set -euo pipefail
cd "$(dirname "$0")/../foretune/cuda/kernels"
nvcc -ptx -arch=compute_75 -O3 check.cu -o check.txt
# nvcc writes its own PTX version; these kernels need only that of the first drivers for compute
# capability 8.0.
sed -i -e 's/^\.version .*/.version 7.0/' -e '/^\/\//d' check.txt
