"""Networks that tests share."""

import pytest
from conftest import ROOT
from foretune import NotFoundError, UnsupportedError
from foretune.networks import Network

NETWORKS = ROOT / "bench" / "networks"


def _reads_onnx():
    try:
        Network.load(NETWORKS / "lenet5.onnx")
    except UnsupportedError:
        return False
    except NotFoundError:
        pytest.fail("bench/networks/lenet5.onnx is missing")
    return True


needs_onnx = pytest.mark.skipif(not _reads_onnx(), reason="built without libonnx-dev")
