#!/usr/bin/env python3
"""Draws docs/pictures/modules.svg, the picture of the modules in docs/explanation/architecture.md, and writes the table of
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
from picture_style import palette

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/pictures/modules.svg"
PAGE = ROOT / "docs/explanation/architecture.md"
BEGIN, END = "<!-- modules: written by scripts/module_picture.py -->", "<!-- end of modules -->"
LINES = 100  # the table's numbers are rounded to so many, or every change would change the page
# The groups of modules, from the bottom of the picture to its top, with their shapes.
SHAPES = {"facts and formats": "box", "computing": "hexagon", "data and models": "cylinder",
          "formats of others": "note", "measuring": "octagon", "deciding": "ellipse", "at run time": "cds"}
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
# Fills, strokes and letters by the palette; a role has the colour of a series and its own shape.
STYLE = """text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:var(--ink)}
text.heading{font-size:17px;font-weight:650}text.source{font-size:12px;fill:var(--soft)}
.sheet{fill:var(--surface)}.node path,.node polygon,.node polyline,.node ellipse{fill-opacity:.16;
stroke-width:1.3}.edge path{stroke:var(--faint)}.edge polygon{fill:var(--faint);stroke:var(--faint)}
"""


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
             '  node [style=filled, fontname="sans-serif", fontsize=13, height=0.35];',
             "  edge [arrowsize=0.6];"]
    known = {name for names in ROLES.values() for name in names}
    if missing := set(edges) - known:
        raise SystemExit(f"module_picture: no role is given for {', '.join(sorted(missing))}")
    for number, (role, names) in enumerate(ROLES.items()):
        for name in names:
            lines.append(f'  "{name}" [shape={SHAPES[role]}, class="r{number}", tooltip="{role}"];')
    lines += [f'  "{name}" -> "{dep}";' for name, dep in reduced(edges)]
    # Boxes of one row each say what a shape and a colour mean.
    lines += ["  subgraph legend { rank=sink;"]
    lines += [f'    "{role}" [shape={SHAPES[role]}, class="r{number}"];' for number, role in enumerate(ROLES)]
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
            print("docs/pictures/modules.svg shows other modules: run scripts/module_picture.py")
            return 1
        return 0
    title = ('  labelloc=t; fontname="sans-serif"; label="The modules of Foretune: an arrow leads to one that is '
             f'used\\nSource: the declarations of modules for CMake, graph {digest}";\n')
    drawn = subprocess.run(["dot", "-Tsvg"], input=text.replace("{\n", "{\n" + title, 1), capture_output=True,
                           text=True, check=True)
    svg = re.sub(r"<!--.*?-->\n?", "", drawn.stdout[drawn.stdout.index("<svg"):], flags=re.S)
    svg = svg.replace('<polygon fill="white"', '<polygon class="sheet"', 1)
    for kind in ("heading", "source"):  # the two lines of the title
        svg = re.sub(r'(class="graph".*?)<text (?!class)', rf'\1<text class="{kind}" ', svg, count=1, flags=re.S)
    roles = "".join(f".r{number} path,.r{number} polygon,.r{number} polyline,.r{number} ellipse"
                    f"{{fill:var(--c{number});stroke:var(--c{number})}}\n" for number in range(len(ROLES)))
    svg = svg.replace(">", f">\n<style>{palette()}\n{STYLE}{roles}</style>", 1)
    PICTURE.write_text(f"<!-- graph {digest}, drawn by scripts/module_picture.py -->\n{svg}",
                       encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:begin]}\n{table(modules)}\n{page[end:]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
