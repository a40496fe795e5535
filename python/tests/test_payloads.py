"""Payloads: files of weights that NumPy writes are the matrix B of the measured products."""

import foretune
import numpy as np
import pytest

SIZES = "n=24 k=40"


@pytest.fixture
def weights(tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    return folder


def collect(tmp_path, weights, lines):
    shapes = tmp_path / "shapes.txt"
    shapes.write_text("\n".join(lines) + "\n")
    return foretune.MatmulDatasetCollector(
        family="cpu-gemm", mode=foretune.CollectionMode.OPERATION_SHAPE_SET, shapeset=shapes,
        num_shapes=0, payloads=[weights], search_space="SAMPLE:2", repeat=1).collect(
            tmp_path / "data.ftd").dataset()


@pytest.mark.parametrize("order", ["C", "F"])
def test_numpys_files_are_weights(tmp_path, weights, order):
    values = np.random.default_rng(3).normal(size=(40, 24)).astype(np.float32)
    np.save(weights / "b.npy", np.asarray(values, order=order))
    # Column-major, as frameworks keep the weights of a linear layer.
    np.save(weights / "linear.npy", np.asarray(values.T, order=order))
    data = collect(tmp_path, weights, [f"gemm m=3 {SIZES} layout=rrr payload=@b.npy",
                                       f"gemm m=3 {SIZES} layout=rcr payload=@linear.npy"])
    assert len(data.problems) == 2
    assert all(" payload=" in problem for problem in data.problems)
    assert (data.outcomes <= 1).all()  # ok, or stopped early


def test_what_is_wrong_with_a_file_is_said(tmp_path, weights):
    np.save(weights / "b.npy", np.zeros((40, 24)))
    with pytest.raises(foretune.UnsupportedError, match="'<f8'"):
        collect(tmp_path, weights, [f"gemm m=3 {SIZES} payload=@b.npy"])
    with pytest.raises(foretune.NotFoundError, match="there is no file 'c.npy'"):
        collect(tmp_path, weights, [f"gemm m=3 {SIZES} payload=@c.npy"])
