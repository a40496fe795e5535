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

from picture_style import palette

WIDTH, LEFT, BAR, ROW = 640, 262, 310, 27
# Keys of the report, and what the picture calls them; in this order.
PICKERS = {"model": "the model's pick", "portfolio_16": "best of 16 configs, all measured",
           "nearest_problem": "best of the most similar problem",
           "best_single_config": "best single config", "default_config": "the family's default",
           "random": "a random config"}
STYLE = """text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:var(--ink)}
.title{font-size:16px;font-weight:650}.small{font-size:12px;fill:var(--soft)}
.source{font-size:11px;fill:var(--faint)}.code{font:12px monospace}.sheet{fill:var(--surface)}
.box{fill:var(--page);stroke:var(--axis)}.bar{fill:var(--bar)}.best{fill:var(--best)}
.line{stroke:var(--axis);stroke-width:1.5;fill:none}.tick,.interval{stroke:var(--ink);stroke-width:1.6}
@media(max-width:560px){text{font-size:15.5px}.title{font-size:19px}.small{font-size:14.5px}
.source,.code{font-size:13.5px}}"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, title: str, lines: list[str], kind: str) -> list[str]:
    return [f'<rect x="{x}" y="{y}" width="{width}" height="{34 + 18 * len(lines)}" rx="6" class="box"/>',
            text(x + 12, y + 22, title),
            *(text(x + 12, y + 42 + 18 * i, line, kind) for i, line in enumerate(lines))]


def wrapped(words: list[str], width: int) -> list[str]:
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def bars(rows: list[tuple[str, dict]], y: float) -> list[str]:
    """The mean of each way of picking with its 95 % interval, and below it the slowest tenth."""
    out = []
    for i, (name, row) in enumerate(rows):
        mean, low = row["mean_efficiency"], row["p10_efficiency"]["value"]
        top, middle = y + ROW * i, y + ROW * i + 9
        out += [text(LEFT - 10, middle + 5, name, "", "end"),
                f'<rect x="{LEFT}" y="{top}" width="{BAR * mean["value"]:.1f}" height="18" '
                f'class="{"best" if i == 0 else "bar"}"/>',
                f'<path d="M{LEFT + BAR * low:.1f} {top}v18" class="tick"/>']
        if "low" in mean:
            begin, end = (LEFT + BAR * mean[side] for side in ("low", "high"))
            out.append(f'<path d="M{begin:.1f} {middle}H{end:.1f}M{begin:.1f} {middle - 5}v10'
                       f'M{end:.1f} {middle - 5}v10" class="interval"/>')
        out.append(text(LEFT + BAR + 12, middle + 5, f"{100 * mean['value']:.1f} %"))
    return out


def picture(summary: dict, pick: dict) -> str:
    facts = dict(summary["facts"])
    found = {row["key"]: row for row in summary["baselines"]}
    metrics = summary["metrics"]
    found["model"] = {f"{name}_efficiency": {"value": metrics[f"{name}_efficiency"]}
                      for name in ("mean", "p10")}
    for side in ("low", "high"):
        if f"mean_efficiency_{side}" in metrics:
            found["model"]["mean_efficiency"][side] = metrics[f"mean_efficiency_{side}"]
    rows = [(name, found[key]) for key, name in PICKERS.items() if found.get(key)]
    config = pick["pick"] or pick["fallback"] or "nothing is legal"
    model = facts["model"].split(", ")
    config_lines = wrapped(config.split(), 74)[:4]
    top = 176 + 18 * len(config_lines)
    height = top + 62 + ROW * len(rows) + 56
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
           f'height="{height}" role="img" aria-label="A problem, the model, its pick, and the picks beside '
           'other ways of picking">',
           f"<style>{palette()}\n{STYLE}</style>",
           f'<rect width="{WIDTH}" height="{height}" class="sheet"/>',
           *box(16, 14, 270, "a problem, never measured", wrapped(pick["problem"].split(), 32)[:3], "code"),
           *box(330, 14, 294, "the model",
                [", ".join(model[:1]) + ", " + model[1].split(" in ")[0],
                 f"{metrics['training_problems']:,} problems measured",
                 f"first pick {metrics['seconds_to_first_pick']} s after the start"], "small"),
           *box(16, 126, 608, "its pick, before anything runs", config_lines, "code"),
           '<path d="M290 58h32m-6-5l6 5l-6 5" class="line"/>',
           '<path d="M477 104v16m-5-6l5 6l5-6" class="line"/>',
           text(16, top + 22, f"Speed of the picks on {metrics['problems']} other problems", "title"),
           text(16, top + 42, "in % of the best known config; mean, 95 % interval, and a tick: one in ten is slower",
                "small"),
           *bars(rows, top + 58)]
    y = top + 58 + ROW * len(rows)
    for percent in (0, 25, 50, 75, 100):
        x = LEFT + BAR * percent / 100
        out += [f'<path d="M{x:.1f} {y}v5" class="line"/>', text(x, y + 19, f"{percent} %", "small", "middle")]
    source = summary.get("source") or f"Foretune; {facts['measured on']}"
    out += [text(16, height - 12, source, "source"), "</svg>"]
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
