"""foretune.sparse, compared with dense products in float64."""

import threading

import foretune
import foretune.sparse
import numpy as np
import pytest


class Rows:
    """Stands for one of the arrays of SciPy, by rows."""

    def __init__(self, dense, index=np.int32):
        self.shape = dense.shape
        where = dense != 0
        self.indptr = np.concatenate([[0], np.cumsum(where.sum(1))]).astype(index)
        self.indices = np.nonzero(where)[1].astype(index)
        self.data = dense[where]


def draw(rng, rows, columns, dtype=np.float32, density=0.1):
    dense = rng.standard_normal((rows, columns)).astype(dtype)
    dense[rng.random((rows, columns)) > density] = 0
    return dense


def close(result, exact, dtype):
    assert result.dtype == dtype
    np.testing.assert_allclose(result, exact, rtol=0, atol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("threads", [1, None])
def test_products_are_those_of_the_dense_matrix(dtype, index, threads):
    rng = np.random.default_rng(1)
    for rows, columns in ((1, 1), (40, 30), (7, 300), (300, 5)):
        dense = draw(rng, rows, columns, dtype)
        matrix = foretune.sparse.Matrix(Rows(dense, index), threads=threads)
        assert matrix.shape == (rows, columns)
        assert matrix.nnz == np.count_nonzero(dense)
        wide = dense.astype(np.float64)
        for shape in ((columns,), (columns, 1), (columns, 9), (columns, 128), (columns, 0)):
            operand = rng.standard_normal(shape).astype(dtype)
            close(matrix @ operand, wide @ operand, dtype)
            out = np.empty((rows, *shape[1:]), dtype)
            assert foretune.sparse.matmul(matrix, operand, out=out) is out
            close(out, wide @ operand, dtype)
        left = rng.standard_normal((rows, 17)).astype(dtype)
        right = rng.standard_normal((columns, 17)).astype(dtype)
        close(matrix.sddmm(left, right), (wide * (left @ right.T))[dense != 0], dtype)


def test_operands_may_have_gaps():
    rng = np.random.default_rng(2)
    dense = draw(rng, 20, 30)
    matrix = foretune.sparse.Matrix(Rows(dense))
    operand = rng.standard_normal((8, 60)).astype(np.float32).T[::2]
    close(matrix @ operand, dense.astype(np.float64) @ operand, np.float32)


def test_matmul_reads_changed_values():
    rows = Rows(np.eye(4, dtype=np.float32))
    ones = np.ones(4, np.float32)
    assert foretune.sparse.matmul(rows, ones).tolist() == [1, 1, 1, 1]
    rows.data *= 2
    assert foretune.sparse.matmul(rows, ones, threads=1).tolist() == [2, 2, 2, 2]


def test_trials_are_kept(tmp_path):
    rng = np.random.default_rng(3)
    rows = Rows(draw(rng, 200, 200))
    operand = rng.standard_normal((200, 32)).astype(np.float32)
    dispatcher = foretune.sparse.Dispatcher(threads=1, measure_top=3)
    matrix = foretune.sparse.Matrix(rows, dispatcher=dispatcher)
    first = matrix @ operand
    for _ in range(9):
        close(matrix @ operand, first, np.float32)
    assert matrix.explain("spmm", 32).startswith("measured: ")
    assert dispatcher.save_trials(tmp_path / "trials.ftd") >= 2
    later = foretune.sparse.Dispatcher(threads=1, choices=tmp_path / "trials.ftd")
    again = foretune.sparse.Matrix(rows, dispatcher=later)
    assert again.explain("spmm", 32).startswith("remembered: ")
    # Another width has no choice yet: the shipped model decides, where there is one.
    assert not again.explain("spmm", 33).startswith("remembered: ")
    close(again @ operand, first, np.float32)


def test_what_was_collected_over_files_is_chosen_for_their_patterns(tmp_path):
    dense = draw(np.random.default_rng(8), 90, 70)
    folder = tmp_path / "matrices"
    folder.mkdir()
    places = np.argwhere(dense != 0) + 1
    with open(folder / "a.mtx", "w") as file:
        print("%%MatrixMarket matrix coordinate pattern general", file=file)
        print(*dense.shape, len(places), file=file)
        print("\n".join(f"{row} {column}" for row, column in places), file=file)
    shapes = tmp_path / "shapes.txt"
    shapes.write_text("sparse op=spmm n=24 payload=@a.mtx\n")
    foretune.MatmulDatasetCollector(
        family="sparse-cpu", mode=foretune.CollectionMode.OPERATION_SHAPE_SET, shapeset=shapes,
        num_shapes=0, payloads=[folder], search_space="SAMPLE:3", repeat=1, threads=1).collect(
            tmp_path / "data.ftd")
    dispatcher = foretune.sparse.Dispatcher(threads=1, choices=tmp_path / "data.ftd",
                                            payloads=folder)
    matrix = foretune.sparse.Matrix(Rows(dense), dispatcher=dispatcher)
    assert matrix.explain("spmm", 24).startswith("remembered: ")
    assert not matrix.explain("spmm", 25).startswith("remembered: ")
    with pytest.raises(foretune.NotFoundError):
        foretune.sparse.Dispatcher(threads=1, choices=tmp_path / "data.ftd", payloads=tmp_path)
    with pytest.raises(foretune.InvalidArgumentError, match="choices, which are missing"):
        foretune.sparse.Dispatcher(payloads=folder)


def test_a_matrix_of_one_use_is_not_packed():
    rng = np.random.default_rng(6)
    dense = draw(rng, 300, 200)
    matrix = foretune.sparse.Matrix(Rows(dense), threads=1, once=True)
    operand = rng.standard_normal((200, 24)).astype(np.float32)
    close(matrix @ operand, dense.astype(np.float64) @ operand, np.float32)
    for operation, n in (("spmv", 1), ("spmm", 24), ("sddmm", 24)):
        assert matrix.explain(operation, n).startswith("default: ")
        assert "format=csr" in matrix.explain(operation, n)


def test_threads_may_share_a_matrix():
    rng = np.random.default_rng(4)
    dense = draw(rng, 500, 400)
    matrix = foretune.sparse.Matrix(Rows(dense))
    operands = [rng.standard_normal((400, n)).astype(np.float32) for n in (8, 8, 64, 65)]
    results = [None] * len(operands)

    def work(i):
        for _ in range(5):
            results[i] = matrix @ operands[i]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(operands))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for operand, result in zip(operands, results):
        close(result, dense.astype(np.float64) @ operand, np.float32)


def test_bad_input_gets_a_sentence():
    matrix = foretune.sparse.Matrix(Rows(np.eye(4, dtype=np.float32)))
    ones = np.ones(4, np.float32)
    with pytest.raises(foretune.InvalidArgumentError, match=r"takes \(4,\) or \(4, n\)"):
        matrix @ np.ones(5, np.float32)
    with pytest.raises(foretune.InvalidArgumentError, match="float64, and the matrix float32"):
        matrix @ np.ones(4)
    with pytest.raises(foretune.InvalidArgumentError, match="NumPy array, not list"):
        matrix @ [1, 2, 3, 4]
    with pytest.raises(foretune.InvalidArgumentError, match="overlap"):
        matrix.matmul(ones, out=ones)
    with pytest.raises(foretune.InvalidArgumentError, match="gaps"):
        matrix.matmul(ones, out=np.empty(8, np.float32)[::2])
    with pytest.raises(foretune.InvalidArgumentError, match="rows of the same length"):
        matrix.sddmm(np.ones((4, 2), np.float32), np.ones((4, 3), np.float32))
    with pytest.raises(foretune.InvalidArgumentError, match="one of SciPy's, not int"):
        foretune.sparse.Matrix(7)
    with pytest.raises(foretune.UnsupportedError, match="int64: use astype"):
        foretune.sparse.Matrix(Rows(np.eye(3, dtype=np.int64)))
    with pytest.raises(foretune.InvalidArgumentError, match="spmv, spmm or sddmm, not 'mm'"):
        matrix.explain("mm")
    with pytest.raises(foretune.InvalidArgumentError, match="already"):
        foretune.sparse.matmul(matrix, ones, threads=1)
    broken = Rows(np.eye(4, dtype=np.float32))
    broken.indices[2] = 9
    with pytest.raises(foretune.InvalidArgumentError, match="row 2 has column 9 first"):
        foretune.sparse.Matrix(broken)


def test_arrays_of_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(5)
    dense = draw(rng, 30, 40, np.float64)
    operand = rng.standard_normal((40, 6))
    for kind in (scipy_sparse.csr_array, scipy_sparse.csc_array, scipy_sparse.coo_array,
                 scipy_sparse.csr_matrix):
        close(foretune.sparse.matmul(kind(dense), operand), dense @ operand, np.float64)
    # A place that occurs twice counts with the sum.
    twice = scipy_sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2)).tocsr()
    assert (foretune.sparse.Matrix(twice) @ np.array([0.0, 1.0])).tolist() == [3, 0]
    shuffled = scipy_sparse.csr_array(([1.0, 2.0], [1, 0], [0, 2]), shape=(1, 2))
    assert (foretune.sparse.Matrix(shuffled) @ np.array([1.0, 10.0])).tolist() == [12]
