"""foretune.torch with whatever PyTorch is installed: it works or says why it cannot."""

import re

import foretune
import foretune.torch
import pytest
from foretune.torch import _hooks

torch = pytest.importorskip("torch")


def test_pytorch_is_served_or_refused_in_one_sentence():
    try:
        inductor = _hooks.open_inductor()
    except foretune.UnsupportedError as refusal:
        text = str(refusal)
        assert "\n" not in text
        assert torch.__version__ in text
        assert all(version in text for version in _hooks.WRITTEN_FOR)
        assert not torch.__version__.startswith(
            tuple(version + "." for version in _hooks.WRITTEN_FOR))
        with pytest.raises(foretune.UnsupportedError, match=re.escape(text)):
            with foretune.torch.autotune():
                pass
    else:
        assert inductor.version == torch.__version__
