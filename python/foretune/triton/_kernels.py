"""The GEMM templates. Imported only where kernels are compiled, because it needs Triton.

All take the same arguments, which the C++ family passes without Python
(``foretune/families/triton/triton.cc``): D[m x n] = epilogue(A[m x k] * B[k x n] + bias), sums in
f32, products of a batch one after another. ``lda`` is the distance in elements between rows of A,
or between its columns where A is column-major; ``ldb`` is the same for B. The rows of D are ``ldd``
elements apart.

Tiles are visited in groups of ``GROUP_M`` rows of tiles, so that blocks that run at the same time
share columns of B in the L2 cache: Triton's tutorial on matrix products describes the order.
"""

import triton
import triton.language as tl


@triton.jit
def _tile_of(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Returns row and column of a tile in grouped order."""
    in_group = GROUP_M * tiles_n
    group = tile // in_group
    first = group * GROUP_M
    rows = tl.minimum(tiles_m - first, GROUP_M)
    within = tile % in_group
    return first + within % rows, within // rows


@triton.jit
def _finished(sums, bias, columns, n, EPILOGUE: tl.constexpr):
    """Applies the epilogue to the sums of a tile before they are stored."""
    if EPILOGUE != 0:
        sums += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    if EPILOGUE == 2:
        sums = tl.maximum(sums, 0.0)
    if EPILOGUE == 3:
        # GELU by tanh, where 1 + tanh z = 2 sigmoid(2 z) and 2 sqrt(2/pi) = 1.5957691.
        sums *= tl.sigmoid(1.5957691216057308 * (sums + 0.044715 * sums * sums * sums))
    return sums


@triton.jit
def matmul_tile(a, b, d, bias, m, n, k, lda, ldb, ldd, batch_a, batch_b, batch_d,
                A_BY_COLUMNS: tl.constexpr, B_BY_COLUMNS: tl.constexpr, EVEN_K: tl.constexpr,
                EPILOGUE: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr,
                BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    """Computes one tile of D per block. Grid: tiles, 1, products."""
    product = tl.program_id(2).to(tl.int64)
    a += product * batch_a
    b += product * batch_b
    d += product * batch_d
    row, column = _tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    depths = tl.arange(0, BLOCK_K)
    # Rows and columns beyond the matrix wrap around to its beginning and are not stored, which is
    # cheaper than a mask in the loop.
    wrapped_rows = (rows % m)[:, None]
    wrapped_columns = (columns % n)[None, :]
    if A_BY_COLUMNS:
        a_from = a + wrapped_rows + depths[None, :] * lda
        a_step = BLOCK_K * lda
    else:
        a_from = a + wrapped_rows * lda + depths[None, :]
        a_step = BLOCK_K
    if B_BY_COLUMNS:
        b_from = b + depths[:, None] + wrapped_columns * ldb
        b_step = BLOCK_K
    else:
        b_from = b + depths[:, None] * ldb + wrapped_columns
        b_step = BLOCK_K * ldb
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        if EVEN_K:
            a_tile = tl.load(a_from)
            b_tile = tl.load(b_from)
        else:
            rest = k - step * BLOCK_K
            a_tile = tl.load(a_from, mask=depths[None, :] < rest, other=0.0)
            b_tile = tl.load(b_from, mask=depths[:, None] < rest, other=0.0)
        sums = tl.dot(a_tile, b_tile, sums, input_precision=PRECISION)
        a_from += a_step
        b_from += b_step
    sums = _finished(sums, bias, columns, n, EPILOGUE)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(d + rows[:, None] * ldd + columns[None, :], sums.to(d.dtype.element_ty), mask=inside)


@triton.jit
def matmul_persistent(a, b, d, bias, m, n, k, lda, ldb, ldd, batch_a, batch_b, batch_d,
                      A_BY_COLUMNS: tl.constexpr, B_BY_COLUMNS: tl.constexpr,
                      EVEN_K: tl.constexpr, EPILOGUE: tl.constexpr, PRECISION: tl.constexpr,
                      BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                      GROUP_M: tl.constexpr):
    """Computes tiles of D one after another in as many blocks as there are multiprocessors. Loads
    and stores use tensor descriptors, which handle elements outside. Grid: blocks, 1, products."""
    product = tl.program_id(2).to(tl.int64)
    a += product * batch_a
    b += product * batch_b
    d += product * batch_d
    if A_BY_COLUMNS:
        a_view = tl.make_tensor_descriptor(a, [k, m], [lda, 1], [BLOCK_K, BLOCK_M])
    else:
        a_view = tl.make_tensor_descriptor(a, [m, k], [lda, 1], [BLOCK_M, BLOCK_K])
    if B_BY_COLUMNS:
        b_view = tl.make_tensor_descriptor(b, [n, k], [ldb, 1], [BLOCK_N, BLOCK_K])
    else:
        b_view = tl.make_tensor_descriptor(b, [k, n], [ldb, 1], [BLOCK_K, BLOCK_N])
    d_view = tl.make_tensor_descriptor(d, [m, n], [ldd, 1], [BLOCK_M, BLOCK_N])
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        row, column = _tile_of(tile, tiles_m, tiles_n, GROUP_M)
        first_row = row * BLOCK_M
        first_column = column * BLOCK_N
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(0, tl.cdiv(k, BLOCK_K)):
            depth = step * BLOCK_K
            if A_BY_COLUMNS:
                a_tile = a_view.load([depth, first_row]).T
            else:
                a_tile = a_view.load([first_row, depth])
            if B_BY_COLUMNS:
                b_tile = b_view.load([first_column, depth]).T
            else:
                b_tile = b_view.load([depth, first_column])
            sums = tl.dot(a_tile, b_tile, sums, input_precision=PRECISION)
        columns = first_column + tl.arange(0, BLOCK_N)
        sums = _finished(sums, bias, columns, n, EPILOGUE)
        d_view.store([first_row, first_column], sums.to(d.dtype.element_ty))


TEMPLATES = {1: matmul_tile, 2: matmul_persistent}
