"""Kernels without a GPU for the tests of foretune.autotune: their times come from a formula."""

import inspect
import math
import zlib

import foretune
from foretune._autotune_device import Device

DEVICE = Device("Simulated 132", "none:1", hardware={
    "cores": 132, "shared_bytes_per_block": 232448, "l1_bytes": 233472, "l2_bytes": 52428800,
    "bandwidth_gbs": 4800, "clock_mhz": 1980, "register_file_bytes": 262144,
    "threads_per_core": 2048, "warp_size": 32, "tensor_peak_gflops": 989e3})


class OutOfResources(Exception):
    """Has the name of Triton's exception; Triton need not be installed."""


class CompilationError(Exception):
    """Has the name of Triton's exception; Triton need not be installed."""


class Config:
    """Stands in for triton.Config, with the parts that the autotuner uses."""

    def __init__(self, kwargs, num_warps=4, num_stages=3, num_ctas=1, pre_hook=None):
        self.kwargs = kwargs
        self.num_warps, self.num_stages, self.num_ctas = num_warps, num_stages, num_ctas
        self.pre_hook = pre_hook

    def all_kwargs(self):
        return {**self.kwargs, "num_warps": self.num_warps, "num_ctas": self.num_ctas,
                "num_stages": self.num_stages}


class Tensor:
    """Stands in for a tensor; one value shows which operations were applied."""

    def __init__(self, dtype="torch.float16", value=0):
        self.dtype = dtype
        self.value = value

    def zero_(self):
        self.value = 0

    def clone(self):
        return Tensor(self.dtype, self.value)

    def copy_(self, other):
        self.value = other.value


class Kernel:
    """Stands in for a JITFunction. ``cost(**arguments)`` returns nanoseconds, or raises."""

    def __init__(self, fn, cost, constants=()):
        self.fn = fn
        self.cost = cost
        self.arg_names = list(inspect.signature(fn).parameters)
        self.constexprs = [self.arg_names.index(name) for name in constants]
        self.launches = []
        self.last_ns = 0.0
        self.warmed_up = []

    def run(self, *args, grid, warmup, **kwargs):
        arguments = {**dict(zip(self.arg_names, args)), **kwargs}
        self.last_ns = self.cost(**arguments)
        self.launches.append(arguments)
        if callable(self.fn):
            self.fn(**{name: arguments.get(name) for name in self.arg_names})
        return grid

    def warmup(self, *args, **kwargs):
        self.warmed_up.append(kwargs)
        return len(self.warmed_up)


class Clock:
    """A measure function: returns the simulated time of one launch; stops early at the limit."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.measured = []

    def __call__(self, launch, limit_ns):
        launch()
        self.measured.append(self.kernel.launches[-1])
        if limit_ns is not None and self.kernel.last_ns > limit_ns:
            return limit_ns, 0.0, True
        return self.kernel.last_ns


def tune(kernel, configs, key, store, **options):
    """Returns the decorated kernel and its clock."""
    clock = options.pop("measure", None) or Clock(kernel)
    options.setdefault("device", DEVICE)
    return foretune.autotune(configs, key, store=store, measure=clock, **options)(kernel), clock


def rows(x_ptr, y_ptr, n, BLOCK):
    """The source of the simplest kernel."""


def rows_cost(n, BLOCK, num_warps=4, num_stages=3, **_):
    """Returns the time of blocks in waves of 132, each with a fixed cost, so that small blocks are
    best for small n and large blocks for large n."""
    return math.ceil(math.ceil(n / BLOCK) / 132) * (400 + BLOCK) * (1 + 0.05 * abs(num_warps - 4))


ROWS_CONFIGS = [Config({"BLOCK": block}, num_warps=warps)
                for block in (64, 256, 1024, 4096) for warps in (2, 4)]


def rows_kernel(cost=rows_cost, **options):
    return Kernel(rows, cost, **options)


def launch(tuned, n, dtype="torch.float16", **arguments):
    tuned[(1,)](Tensor(dtype), Tensor(dtype), n, **arguments)
    return tuned.best_config


def gemm(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K, GROUP_SIZE_M):
    """The source of a matrix product."""


def gemm_cost(M, N, K, BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K, GROUP_SIZE_M=8, num_warps=4,
              num_stages=3, **_):
    """Returns the time of tiles in waves of 132 multiprocessors, bound by matrix units, memory and
    pipeline, with 1 % of reproducible noise."""
    elements = BLOCK_SIZE_M * BLOCK_SIZE_N
    shared = 2 * num_stages * BLOCK_SIZE_K * (BLOCK_SIZE_M + BLOCK_SIZE_N) + 1024
    if shared > 232448:
        raise OutOfResources(f"out of resource: shared memory, Required: {shared}, "
                             "Hardware limit: 232448.")
    resident = max(1, min(232448 // shared, 65536 // (elements + 1024 * num_warps),
                          2048 // (32 * num_warps)))
    tiles = math.ceil(M / BLOCK_SIZE_M) * math.ceil(N / BLOCK_SIZE_N)
    trips = math.ceil(K / BLOCK_SIZE_K)
    # `busy` is the utilisation of the matrix units by one tile.
    reuse = elements / (BLOCK_SIZE_M + BLOCK_SIZE_N)
    busy = min(1.0, 0.25 + reuse / 80) * min(1.0, 0.6 + 0.1 * num_stages)
    busy *= 1.0 if elements / (32 * num_warps) <= 128 else 0.4
    busy *= 1.0 if elements / (32 * num_warps) >= 16 else 0.7
    waves = math.ceil(tiles / (132 * resident))
    last = tiles - (waves - 1) * 132 * resident
    shares = (waves - 1) * resident + math.ceil(last / 132)
    compute = 2 * shares * elements * BLOCK_SIZE_K * trips / (busy * 4096 * 1.83)
    loaded = 2 * tiles * (BLOCK_SIZE_M + BLOCK_SIZE_N) * BLOCK_SIZE_K * trips
    memory = 0.25 * loaded / 4000
    fill = 500 + 250 * num_stages + 4 * trips
    noise = zlib.crc32(repr((M, N, K, BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K, num_warps,
                             num_stages)).encode()) / 2**32
    return (max(compute, memory) + fill) * (0.99 + 0.02 * noise)


GEMM_CONFIGS = [
    Config({"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": 8},
           num_warps=warps, num_stages=stages)
    for m, n in ((16, 64), (32, 64), (64, 32), (64, 64), (64, 128), (128, 64), (128, 128),
                 (128, 256), (256, 128))
    for k in (32, 64, 128) for stages, warps in ((3, 4), (3, 8), (4, 4), (4, 8))]


def gemm_shapes(count, seed):
    """Returns random sizes like those of workloads: log-uniform, multiples of 16."""
    import random

    rng = random.Random(seed)

    def size(low, high):
        return 16 * max(1, round(math.exp(rng.uniform(math.log(low), math.log(high))) / 16))

    return [(size(16, 8192), size(256, 8192), size(128, 8192)) for _ in range(count)]


def best_of(configs, cost, **sizes):
    """Returns the smallest time of any config that runs (the oracle)."""
    times = []
    for config in configs:
        try:
            times.append(cost(**sizes, **config.all_kwargs()))
        except (OutOfResources, CompilationError):
            continue
    return min(times)
