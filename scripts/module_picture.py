#!/usr/bin/env python3
"""Draws docs/modules.svg, the picture of the modules in docs/architecture.md, and writes the table of
modules beside it:

    scripts/module_picture.py build/dev/modules.txt           writes both; needs graphviz (`dot`)
    scripts/module_picture.py build/dev/modules.txt --check   fails where the modules have changed since

An arrow leads from a module to one that it uses. Arrows that follow from others are left out, so that
one can see the order. The families are two boxes: those that the dispatcher runs, and all. The picture names the graph that it was drawn from,
so a check needs no graphviz.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

from check_layering import closure, read_modules

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/modules.svg"
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- modules: written by scripts/module_picture.py -->", "<!-- end of modules -->"
LINES = 100  # the table's numbers are rounded to so many, or every change would change the page
# The groups of modules, from the bottom of the picture to its top.
ROLES = {
    "facts and formats": ("base", "formats", "metrics", "hardware", "problem", "space"),
    "computing": ("sparse", "graph", "graph_run", "kernels", "loop", "loop_machine", "cuda", "cuda_measuring",
                  "cublaslt", "cudnn"),
    "data and models": ("dataset", "features", "model", "training_files", "model_train"),
    "formats of others": ("interop_names", "interop_data", "interop_models", "interop_import",
                          "interop_dispatcher", "interop_onnx"),
    "measuring": ("family", "families", "kernel_families", "measure", "loop_gym"),
    "deciding": ("search", "collect", "tune", "approx", "evaluate", "report", "workflow", "cluster"),
    "at run time": ("select", "export_cpp", "dispatch", "plugin", "plugin_loader"),
}
COLOURS = ("#e8eef7", "#fdf1dc", "#e6f4e6", "#f6e6ee", "#f3ecfa", "#fbe9e3", "#e3f3f5")


def edges_of(modules: dict[str, tuple[str, set[str], list[str]]]) -> dict[str, set[str]]:
    """Returns what each box uses, families being two: those that the dispatcher runs, and all."""
    run = modules["dispatch"][1]

    def box(name: str) -> str:
        if name in run and name.startswith("families") or name == "sparse_products":
            return "kernel_families"
        return "families" if name.startswith("families") else name

    edges: dict[str, set[str]] = {}
    for name, (_, deps, _) in modules.items():
        edges.setdefault(box(name), set()).update(box(dep) for dep in deps if box(dep) != box(name))
    return edges


def reduced(edges: dict[str, set[str]]) -> list[tuple[str, str]]:
    boxes = {name: ("", deps, []) for name, deps in edges.items()}
    return sorted((name, dep) for name, deps in edges.items() for dep in deps
                  if not any(dep in closure(other, boxes) for other in deps - {dep}))


def graph_text(edges: dict[str, set[str]]) -> str:
    lines = ["digraph modules {", "  rankdir=TB; nodesep=0.25; ranksep=0.45;",
             '  node [shape=box, style="filled,rounded", fontname="sans-serif", fontsize=13, '
             'color="#555555", height=0.35];', '  edge [color="#777777", arrowsize=0.6];']
    known = {name for names in ROLES.values() for name in names}
    if missing := set(edges) - known:
        raise SystemExit(f"module_picture: no role is given for {', '.join(sorted(missing))}")
    for colour, (role, names) in zip(COLOURS, ROLES.items()):
        for name in names:
            lines.append(f'  "{name}" [fillcolor="{colour}", tooltip="{role}"];')
    lines += [f'  "{name}" -> "{dep}";' for name, dep in reduced(edges)]
    # Boxes of one row each say what a colour means.
    lines += ['  subgraph legend { rank=sink; node [fontsize=11, color="#ffffff", style=filled];']
    lines += [f'    "{role}" [fillcolor="{colour}"];' for colour, role in zip(COLOURS, ROLES)]
    lines += ["  }", *(f'  base -> "{role}" [style=invis];' for role in ROLES), "}"]
    return "\n".join(lines) + "\n"


def count_lines(folder: str, files: list[str]) -> int:
    return sum(len((ROOT / folder / file).read_text(encoding="utf-8").splitlines()) for file in files)


def table(modules: dict[str, tuple[str, set[str], list[str]]]) -> str:
    def rounded(lines: int) -> str:
        return f"{round(lines / LINES) * LINES:,}"

    rows = ["| module | folder | lines | uses |", "|---|---|---|---|"]
    for name, (folder, deps, files) in modules.items():
        rows.append(f"| {name} | `{folder}` | {rounded(count_lines(folder, files))} | {len(deps)} |")
    arrows = sum(len(deps) for _, deps, _ in modules.values())
    lines = sum(count_lines(folder, files) for folder, _, files in modules.values())
    rows.append(f"| {len(modules)} modules | | {rounded(lines)} | {arrows} |")
    return "\n".join(rows)


def main() -> int:
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    modules = read_modules(Path(sys.argv[1]))
    text = graph_text(edges_of(modules))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    if "--check" in sys.argv:
        if not PICTURE.exists() or f"graph {digest}" not in PICTURE.read_text(encoding="utf-8"):
            print("docs/modules.svg shows other modules: run scripts/module_picture.py")
            return 1
        return 0
    drawn = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    svg = re.sub(r"<!--.*?-->\n?", "", drawn.stdout[drawn.stdout.index("<svg"):], flags=re.S)
    PICTURE.write_text(f"<!-- graph {digest}, drawn by scripts/module_picture.py -->\n{svg}",
                       encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:begin]}\n{table(modules)}\n{page[end:]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
