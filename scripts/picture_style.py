"""The colours of the project's plots, for pictures that scripts draw. foretune/report/style.cc has
them, for light and for dark."""

from __future__ import annotations

import re
from pathlib import Path

STYLE = Path(__file__).resolve().parent.parent / "foretune/report/style.cc"


def palette() -> str:
    """Returns the style sheet that sets the colours as variables: --ink, --surface, --c0, ..."""
    found = re.search(r'palette\(\) \{\s*return R"css\((.*?)\)css"', STYLE.read_text(encoding="utf-8"),
                      re.S)
    if not found:
        raise SystemExit(f"{STYLE} has no palette")
    return found.group(1).strip()
