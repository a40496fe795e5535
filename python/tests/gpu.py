"""Imports torch for tests that need an NVIDIA GPU, or skips the file with a reason."""

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU here", allow_module_level=True)


def operand(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)
