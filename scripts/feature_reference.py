#!/usr/bin/env python3
"""Writes docs/reference/feature-tables: a page for each feature table, with every column.

    PYTHONPATH=build/dev/python build/venv/bin/python scripts/feature_reference.py            writes the folder
    PYTHONPATH=build/dev/python build/venv/bin/python scripts/feature_reference.py --check    fails where it differs
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import foretune

from pages import ROOT, finish

FOLDER = ROOT / "docs/reference/feature-tables"
PARTS = {"problem": "Columns of the problem", "config": "Columns of the config", "both": "Columns of both"}


def columns(table: foretune.FeatureTable) -> str:
    out = ""
    for part, title in PARTS.items():
        features = [feature for feature in table.features if feature.kind == part]
        if features:
            out += f"\n## {title}\n\n| column | meaning |\n|---|---|\n"
        for feature in features:
            notes = ["a code without an order"] * feature.is_categorical + ["may be missing"] * feature.may_be_missing
            code = f" ({', '.join(notes)})" if notes else ""
            words = feature.description or f"`{feature.expression}`"
            about = words if words.startswith("`") else feature.description.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
            out += f"| `{feature.name}` | {about}{code} |\n"
    return out


def fits(table: foretune.FeatureTable) -> str:
    """Returns the problems and configs that the table describes, as text."""
    schemas: dict[str, set[str]] = {}
    for fit in table.fits:
        if fit.config_schema:
            schemas.setdefault(fit.problem_type, set()).add(fit.config_schema)
    problems: dict[tuple[str, ...], list[str]] = {}
    for problem, names in sorted(schemas.items()):
        problems.setdefault(tuple(sorted(names)), []).append(problem)
    texts = [f"{listed(types)} with configs {listed(names)}" for names, types in problems.items()]
    return "; ".join(texts) or "imported configs"


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def pages() -> dict[Path, str]:
    out = {}
    rows = []
    for table in sorted(foretune.feature_tables(), key=lambda table: table.name):
        page = FOLDER / f"{table.name}.md"
        out[page] = (f"# {table.name}\n\n{len(table.features)} columns for {fits(table)}.\n"
                     + columns(table))
        rows.append(f"| [{table.name}]({page.name}) | {len(table.features)} | {fits(table)} |")
    out[FOLDER / "index.md"] = (
        "# Columns of the feature tables\n\n`scripts/feature_reference.py` writes these pages.\n"
        "[Features](../features.md) says what the tables are for and how they are computed.\n\n"
        "| table | columns | for |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return out


def main() -> int:
    return finish(pages(), [FOLDER], "scripts/feature_reference.py", sys.argv[1:] == ["--check"])


if __name__ == "__main__":
    sys.exit(main())
