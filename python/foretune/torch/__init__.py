"""Foretune inside ``torch.compile``: a model picks the matrix products' kernels while Inductor
compiles, and Inductor's own measurements become data to learn from.

    with foretune.torch.autotune(k=1) as session:
        compiled = torch.compile(network)
        compiled(example)                       # compiles here
    print(session.report())

    with foretune.torch.collect("mm.ftd") as collection:
        torch.compile(network, dynamic=False)(example)
    print(collection.report())

Importing this changes nothing and does not import torch; each ``with`` restores all that it
changes. Written for PyTorch 2.11 and 2.15; another version works when its hooks have the same
shape, else the ``with`` raises ``UnsupportedError``.
"""

from __future__ import annotations

from ._collection import Collection, collect
from ._session import Decision, Session, autotune

__all__ = ["Collection", "Decision", "Session", "autotune", "collect"]
