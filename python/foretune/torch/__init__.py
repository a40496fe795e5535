"""Foretune inside ``torch.compile``: a model picks the matrix products' kernels while Inductor
compiles, and Inductor's own measurements become data to learn from.

    with foretune.torch.autotune(k=1) as session:
        compiled = torch.compile(network)
        compiled(example)                       # compiles here
    print(session.report())

    with foretune.torch.collect("mm.ftd") as collection:
        torch.compile(network, dynamic=False)(example)
    print(collection.report())

    with foretune.torch.convolutions("conv.ftm"):
        train(network)                          # cuDNN's engines by the model

On the CPU, ``convolution`` computes with our own kernels, and ``use_convolutions(network)`` makes a
network's modules do so.

Importing this changes nothing and does not import torch; each ``with`` restores all that it
changes. Written for PyTorch 2.11 and 2.15; another version works when its hooks have the same
shape, else the ``with`` raises ``UnsupportedError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._collection import Collection, collect
from ._session import Decision, Session, autotune

if TYPE_CHECKING:
    from ._convolution import convolution, use_convolutions
    from ._gpu_convolutions import convolutions

__all__ = ["Collection", "Decision", "Session", "autotune", "collect", "convolution",
           "convolutions", "use_convolutions"]


def __getattr__(name: str) -> Any:
    # They register operators, for which they import torch.
    if name in ("convolution", "use_convolutions"):
        from . import _convolution

        globals()[name] = value = getattr(_convolution, name)
        return value
    if name == "convolutions":
        from ._gpu_convolutions import convolutions

        globals()[name] = convolutions
        return convolutions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
