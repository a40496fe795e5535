"""foretune.autotune on a GPU: a custom matrix product, compared with triton.autotune."""

import pytest
from gpu import operand, torch  # before Triton: skips the file where there is no GPU

import foretune
import triton
import triton.language as tl

GOOD = [triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}, num_warps=w,
                      num_stages=s)
        for m, n, k, w, s in (
            (16, 64, 64, 4, 4), (16, 128, 128, 4, 3), (32, 64, 64, 4, 4), (32, 128, 64, 4, 4),
            (64, 32, 64, 4, 4), (64, 64, 64, 4, 3), (64, 64, 128, 4, 3), (64, 128, 64, 4, 3),
            (64, 128, 64, 8, 4), (128, 64, 64, 4, 3), (128, 128, 32, 4, 4), (128, 128, 64, 4, 3),
            (128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (64, 256, 64, 8, 4))]
# One config needs more shared memory than there is, one has a depth too short for the compiler.
BAD = [triton.Config({"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 128, "GROUP_M": 8}, num_warps=8,
                     num_stages=5),
       triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 8, "GROUP_M": 8}, num_warps=4,
                     num_stages=2)]
FIRST = [(16, 4096, 4096), (64, 4096, 4096), (256, 1024, 4096), (512, 512, 512),
         (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 1024), (128, 8192, 2048)]
NEW = [(32, 2048, 8192), (384, 3072, 768), (1536, 1536, 3072), (3072, 1024, 4096)]


@triton.jit
def matmul(a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
           GROUP_M: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    per_group = GROUP_M * tiles_n
    group = pid // per_group
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + (pid % per_group) % rows
    pid_n = (pid % per_group) // rows
    at_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    at_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    at_k = tl.arange(0, BLOCK_K)
    pa = a + at_m[:, None] * stride_am + at_k[None, :] * stride_ak
    pb = b + at_k[:, None] * stride_bk + at_n[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        x = tl.load(pa, mask=at_k[None, :] < left, other=0.0)
        y = tl.load(pb, mask=at_k[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
        pa += BLOCK_K * stride_ak
        pb += BLOCK_K * stride_bk
    at_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    at_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(c + at_cm[:, None] * stride_cm + at_cn[None, :] * stride_cn,
             total.to(c.dtype.element_ty), mask=(at_cm[:, None] < M) & (at_cn[None, :] < N))


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


def tuned(folder, **options):
    return foretune.autotune(GOOD + BAD, ["M", "N", "K"], store=folder, min_keys=len(FIRST),
                             **{"top_k": 3, **options})(matmul)


def multiply(kernel, shape):
    """Launches the kernel on random operands and checks the result."""
    rows, columns, depth = shape
    a, b = operand(rows, depth), operand(depth, columns)
    c = torch.full((rows, columns), float("nan"), device="cuda", dtype=torch.bfloat16)

    def grid(meta):
        return (triton.cdiv(rows, meta["BLOCK_M"]) * triton.cdiv(columns, meta["BLOCK_N"]),)

    kernel[grid](a, b, c, rows, columns, depth, *a.stride(), *b.stride(), *c.stride())
    torch.testing.assert_close(c, a @ b, rtol=2e-2, atol=2e-1)


def test_learns_across_shapes_and_measures_nothing_twice(tmp_path):
    kernel = tuned(tmp_path)
    for shape in FIRST + NEW:
        multiply(kernel, shape)
    keys = kernel.report().keys
    assert [key.method for key in keys] == ["exhaustive"] * len(FIRST) + ["model"] * len(NEW)
    # Configs that cannot run become outcomes, and are not tried again on new keys.
    assert all(key.failed >= 1 for key in keys[:len(FIRST)])
    assert all(key.failed == 0 for key in keys[len(FIRST):])
    outcomes = {entry.outcome: entry.reason
                for entry in kernel.store.measurements(kernel.store.keys[0]).values()}
    assert "shared memory" in outcomes["unsupported"]
    measured = len(kernel.store)
    # A new autotuner starts as another process would: it measures nothing again.
    again = tuned(tmp_path)
    for shape in FIRST + NEW:
        multiply(again, shape)
    assert len(again.store) == measured


def test_times_in_cuda_graphs(tmp_path):
    kernel = tuned(tmp_path, use_cuda_graph=True, rep=20)
    multiply(kernel, (512, 512, 512))
    (key,) = kernel.report().keys
    assert key.method == "exhaustive"


@pytest.mark.parametrize("options,expected", [({"reset_to_zero": ["x"]}, 1.0),
                                              ({"restore_value": ["x"]}, 6.0)])
def test_tensors_are_reset_while_measuring(tmp_path, options, expected):
    configs = [triton.Config({"BLOCK": block}) for block in (128, 256)]
    kernel = foretune.autotune(configs, ["n"], store=tmp_path, **options)(add_one)
    x = torch.full((1000,), 5.0, device="cuda")
    kernel[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, 1000)
    assert (x == expected).all()
