#!/usr/bin/env python3
"""Draws what the demo did as an SVG: a problem, the model, its pick, and how the picks compare with
other ways of picking:

    scripts/demo_picture.py build/demo/summary.json build/demo/pick.json picture.svg
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path

WIDTH, LEFT, BAR, ROW = 860, 250, 480, 26
# Keys of the report, and what the picture calls them; in this order.
PICKERS = {"model": "the model's pick", "portfolio_16": "best of 16 configs, all measured",
           "nearest_problem": "best config of the most similar problem",
           "best_single_config": "best single config", "default_config": "the family's default",
           "random": "a random config"}
STYLE = """text{font:13px sans-serif;fill:#222}.small{font-size:11px;fill:#666}.code{font:12px monospace}
.box{fill:#f4f6f9;stroke:#8a94a3}.bar{fill:#9fb3cc}.best{fill:#2b7a4b}.line{stroke:#8a94a3}
.tick{stroke:#222;stroke-width:2}
@media(prefers-color-scheme:dark){text{fill:#ddd}.small{fill:#999}.box{fill:#23272e;stroke:#6b7480}
.tick{stroke:#eee}}"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, width: float, title: str, lines: list[str], code: bool) -> str:
    out = [f'<rect x="{x}" y="10" width="{width}" height="100" rx="6" class="box"/>',
           text(x + 10, 30, title)]
    out += [text(x + 10, 50 + 16 * i, line, "code" if code else "small") for i, line in enumerate(lines)]
    return "\n".join(out)


def wrapped(words: list[str], width: int) -> list[str]:
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def picture(summary: dict, pick: dict) -> str:
    facts = dict(summary["facts"])
    found = {row["key"]: row for row in summary["baselines"]}
    metrics = summary["metrics"]
    found["model"] = {"mean_efficiency": {"value": metrics["mean_efficiency"]},
                      "p10_efficiency": {"value": metrics["p10_efficiency"]}}
    rows = [(name, found[key]) for key, name in PICKERS.items() if found.get(key)]
    height = 180 + ROW * len(rows)
    config = pick["pick"] or pick["fallback"] or "nothing is legal"
    model = facts["model"].split(", ")
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}">',
           f"<style>{STYLE}</style>",
           box(10, 190, "a problem, never measured", wrapped(pick["problem"].split(), 22)[:4], True),
           box(240, 230, "the model", [", ".join(model[:1]) + ", " + model[1].split(" in ")[0],
                                       f"{metrics['training_problems']:,} problems measured",
                                       f"first pick {metrics['seconds_to_first_pick']} s after the start",
                                       facts["measured on"]], False),
           box(510, 340, "its pick, before anything runs", wrapped(config.split(), 44)[:4], True)]
    for x in (204, 474):
        out.append(f'<path d="M{x} 60h26m-6-5l6 5l-6 5" fill="none" class="line"/>')
    out.append(text(10, 140, f"Speed of the picks on {metrics['problems']} other problems, "
                             "in % of the best known config (line: one problem in ten is slower)"))
    for i, (name, row) in enumerate(rows):
        y = 154 + ROW * i
        mean, low = row["mean_efficiency"]["value"], row["p10_efficiency"]["value"]
        out.append(text(LEFT - 8, y + 14, name, "", "end"))
        out.append(f'<rect x="{LEFT}" y="{y}" width="{BAR * mean:.1f}" height="18" '
                   f'class="{"best" if i == 0 else "bar"}"/>')
        out.append(f'<path d="M{LEFT + BAR * low:.1f} {y}v18" class="tick"/>')
        out.append(text(LEFT + BAR * mean + 8, y + 14, f"{100 * mean:.1f}"))
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    summary, pick = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:3])
    Path(sys.argv[3]).write_text(picture(summary, pick), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
