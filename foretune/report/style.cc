#include "foretune/base/text.h"
#include "foretune/report/internal/drawing.h"
#include "foretune/report/internal/plots.h"

namespace foretune::report_internal {

// Efficiencies go from blue to red through grey, so that they also differ for readers who do not
// see red and green apart.
std::string_view palette() {
  return R"css(
:root {
  color-scheme: light dark;
  --page: #f6f6f3; --surface: #ffffff; --ink: #16181d; --soft: #5b606b; --faint: #8a8f98;
  --border: #e3e3dd; --grid: #ecece6; --axis: #b9bbb6; --track: #eeeee9;
  --warn-back: #fff4dc; --warn-edge: #d99a1c; --warn-ink: #5c3f00; --mark: #ffe3a3;
  --bar: #a9c6ea; --best: #1c5cb8; --peak: #c5321c;
  --e0: #c5321c; --e1: #ea8a34; --e2: #a9a28f; --e3: #64a1e2; --e4: #1c5cb8;
  --h0: #f1f4f8; --h1: #dbe7f5; --h2: #b5d0ef; --h3: #6fa5df; --h4: #1c5cb8;
  --on-h3: #0c1c30; --on-h4: #ffffff;
  --c0: #1c5cb8; --c1: #d4690a; --c2: #0d8a70; --c3: #8a4bc4; --c4: #c0245b; --c5: #8d6b3f;
  --c6: #84878c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #131417; --surface: #1c1e22; --ink: #eceef1; --soft: #a9aeb8; --faint: #7d828c;
    --border: #31343a; --grid: #2a2d32; --axis: #565a62; --track: #2b2e34;
    --warn-back: #33290f; --warn-edge: #c78f1f; --warn-ink: #f5dca3; --mark: #5f4a12;
    --bar: #35557e; --best: #79b0ff; --peak: #ff6f52;
    --e0: #ff6f52; --e1: #e0913f; --e2: #8f8a7d; --e3: #4c86cc; --e4: #86b9ff;
    --h0: #1d2127; --h1: #20303f; --h2: #27476b; --h3: #3d74b4; --h4: #86b9ff;
    --on-h3: #ffffff; --on-h4: #0c1c30;
    --c0: #79b0ff; --c1: #f09a4c; --c2: #3dbf9f; --c3: #bf90f2; --c4: #f2759f; --c5: #c9a574;
    --c6: #9a9ea6;
  }
}
)css";
}

namespace {

std::string series_colours() {
  std::string out;
  for (int i = 0; i < 7; ++i) {
    const std::string variable = concat("var(--c", i, ")");
    out += concat(".series.c", i, ", .one.c", i, " { stroke: ", variable, "; } .mark.c", i,
                  " { fill: ", variable, "; }\n");
  }
  return out;
}

}  // namespace

std::string plot_style() {
  return concat(palette(), R"css(
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  fill: var(--soft); font-variant-numeric: tabular-nums; }
svg text.heading { fill: var(--ink); font-size: 16px; font-weight: 650; }
svg text.note { font-size: 12.5px; }
svg text.small { font-size: 11.5px; }
svg text.source { fill: var(--faint); font-size: 11px; }
svg text.name, svg text.label { fill: var(--ink); font-size: 12.5px; }
svg text.value { fill: var(--ink); }
svg text.strong { fill: var(--ink); font-weight: 650; }
svg text.tag { fill: var(--ink); paint-order: stroke; stroke: var(--surface); stroke-width: 3px;
  stroke-linejoin: round; }
svg text.small.tag { fill: var(--soft); }
.sheet { fill: var(--surface); }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--axis); stroke-width: 1; }
.guide { stroke: var(--axis); stroke-width: 1; stroke-dasharray: 2 4; }
.even { stroke: var(--axis); stroke-width: 1.5; }
.diagonal { stroke: var(--e1); stroke-width: 1.5; }
.break { stroke: var(--soft); stroke-width: 1.2; }
.series { fill: none; stroke: var(--soft); stroke-width: 1.9; stroke-linejoin: round; }
.series.c0 { stroke-width: 2.8; }
.series.thin { stroke-width: 1; stroke-opacity: 0.6; }
.series.whole { stroke-width: 2.2; }
.series.s1 { stroke-dasharray: 7 4; } .series.s2 { stroke-dasharray: 2 3; }
.series.s3 { stroke-dasharray: 10 3 2 3; } .series.s4 { stroke-dasharray: 4 2; }
.one { fill: none; stroke-width: 1; stroke-opacity: 0.16; stroke-linejoin: round; }
.many .one { stroke-opacity: 0.09; }
.methods:hover .method { opacity: 0.12; }
.methods .method:hover { opacity: 1; }
.methods .method:hover .one { stroke-opacity: 0.6; }
.mark { fill: var(--soft); stroke: var(--surface); stroke-width: 1.2; }
.dot { stroke: var(--surface); stroke-width: 0.8; fill-opacity: 0.92; }
.span { fill: none; stroke: var(--soft); stroke-width: 1.5; stroke-linecap: round; }
.interval { stroke: var(--ink); stroke-width: 1.6; }
.cloud { fill: none; stroke: var(--c0); stroke-width: 4.5; stroke-linecap: round;
  stroke-opacity: 0.5; }
.cloud.dense { stroke-width: 3; stroke-opacity: 0.28; }
.cloud.met { stroke-opacity: 0.35; }
.cloud.kept { stroke: var(--c1); }
.cloud.missed { stroke: var(--faint); stroke-width: 1; stroke-opacity: 0.5; }
.trial { fill: var(--c0); fill-opacity: 0.45; }
.trial.missed { fill: var(--faint); fill-opacity: 0.7; }
.trial.kept { fill: none; stroke: var(--c1); stroke-width: 1.3; }
.trial.front { fill: var(--c2); fill-opacity: 1; }
.step { fill: none; stroke: var(--c2); stroke-width: 1.8; stroke-linejoin: round; }
.step.alone { stroke-width: 1.2; stroke-dasharray: 4 3; }
.forbidden { fill: var(--e0); fill-opacity: 0.11; }
.forbidden.loose { fill-opacity: 0.05; }
.limit { stroke: var(--e0); stroke-width: 1.3; }
.limit.loose { stroke-dasharray: 4 3; }
.peak { stroke: var(--peak); stroke-width: 1.5; stroke-dasharray: 5 3; }
svg text.peak-text { fill: var(--peak); }
rect.bar { fill: var(--bar); }
rect.bar.best { fill: var(--best); fill-opacity: 0.85; }
.point { fill: var(--soft); fill-opacity: 0.5; stroke: var(--surface); stroke-width: 0.7; }
.point.best { fill: var(--ink); }
.end { fill: var(--bar); stroke: var(--soft); stroke-width: 1.2; }
.end.best { fill: var(--best); stroke: var(--best); }
.ring { fill: var(--surface); stroke: var(--soft); stroke-width: 1.5; }
.ring.best { stroke: var(--best); }
.cell.h0 { fill: var(--h0); } .cell.h1 { fill: var(--h1); } .cell.h2 { fill: var(--h2); }
.cell.h3 { fill: var(--h3); } .cell.h4 { fill: var(--h4); }
svg text.cell-text { pointer-events: none; fill: var(--ink); font-size: 11.5px; }
svg text.cell-text.h3 { fill: var(--on-h3); }
svg text.cell-text.h4 { fill: var(--on-h4); font-weight: 650; }
.violin { fill: var(--bar); fill-opacity: 0.75; stroke: var(--soft); stroke-width: 1; }
.violin.best { fill: var(--best); fill-opacity: 0.55; stroke: var(--best); }
.box { fill: var(--ink); fill-opacity: 0.8; }
.median { fill: var(--surface); stroke: var(--ink); stroke-width: 2; }
.dot:hover, .mark:hover, .trial:hover, .point:hover, .end:hover, .ring:hover, .cell:hover {
  stroke: var(--ink); stroke-width: 2; }
)css",
                series_colours(), R"css(
.dot.e0 { fill: var(--e0); } .dot.e1 { fill: var(--e1); } .dot.e2 { fill: var(--e2); }
.dot.e3 { fill: var(--e3); } .dot.e4 { fill: var(--e4); }
@media (max-width: 440px) {
  svg text { font-size: 15px; }
  svg text.heading { font-size: 19.5px; }
  svg text.note, svg text.name, svg text.label { font-size: 15.5px; }
  svg text.small { font-size: 14px; }
  svg text.source { font-size: 13.5px; }
  svg text.cell-text { font-size: 14px; }
}
)css");
}

namespace {

std::string_view layout_style() {
  return R"css(
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
main { max-width: 1120px; margin: 0 auto; padding: 36px 24px 56px; }
h1 { font-size: 26px; line-height: 1.25; font-weight: 650; letter-spacing: -0.01em; margin: 0 0 8px; }
h2, h3 { font-size: 17px; font-weight: 650; margin: 0 0 2px; overflow-wrap: anywhere; }
section h2 ~ * h3, section h2 ~ figure h3 { font-size: 15px; }
figure { margin: 0; min-width: 0; }
.source { color: var(--faint); font-size: 11.5px; margin: 8px 0 0; overflow-wrap: anywhere; }
footer { margin: 22px 2px 0; }
p { margin: 0 0 10px; }
.lead { font-size: 16.5px; color: var(--soft); max-width: 78ch; margin-bottom: 22px; }
.lead b { color: var(--ink); font-weight: 600; }
.hint { color: var(--soft); font-size: 13.5px; margin-bottom: 14px; max-width: 90ch; }
section, .tile, .warnings {
  background: var(--surface); border: 1px solid var(--border); border-radius: 12px;
}
section { padding: 20px 22px; margin-top: 18px; min-width: 0; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 18px; }
.tiles { display: grid; grid-template-columns: 1.5fr repeat(5, 1fr); gap: 12px; }
.tile { padding: 14px 16px 13px; min-width: 0; }
.tile .what { color: var(--soft); font-size: 13px; white-space: nowrap; }
.tile .value { font-size: 27px; font-weight: 620; line-height: 1.2; letter-spacing: -0.02em;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile .value small { font-size: 0.56em; font-weight: 500; color: var(--soft); letter-spacing: 0; }
.tile .range { color: var(--faint); font-size: 12.5px; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.tile.first .value { font-size: 44px; line-height: 1.1; color: var(--c0); }
.strip { display: flex; flex-wrap: wrap; gap: 4px 26px; margin: 14px 2px 0; color: var(--soft);
  font-size: 14px; }
.strip b { color: var(--ink); font-weight: 600; font-variant-numeric: tabular-nums; }
.warnings { background: var(--warn-back); border-color: var(--warn-edge); color: var(--warn-ink);
  padding: 12px 18px; margin: 0 0 18px; }
.warnings ul { margin: 0; padding-left: 18px; }
.warnings li { margin: 3px 0; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
.legend { display: flex; flex-wrap: wrap; gap: 3px 16px; margin: 8px 0 0; color: var(--soft);
  font-size: 13px; }
.legend svg { display: inline-block; width: 22px; height: 14px; vertical-align: -2px; margin-right: 6px; }
.tuned { align-items: start; margin: 10px 0 14px; }
td.config, th.config { text-align: left; white-space: normal; padding-left: 18px; min-width: 260px; }
td.problem { white-space: normal; min-width: 200px; }
.row { grid-column: 1 / -1; }
a { color: var(--c0); text-decoration: none; }
a:hover { text-decoration: underline; }
.scroll { overflow-x: auto; margin: 0 -6px; padding: 0 6px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { font-weight: 500; color: var(--soft); font-size: 13px; text-align: right;
  padding: 4px 6px 6px; white-space: nowrap; border-bottom: 1px solid var(--border); }
td { text-align: right; padding: 6px 6px; white-space: nowrap; }
tbody tr + tr td { border-top: 1px solid var(--grid); }
tbody tr.plain td { border-top: 0; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
td .soft, .soft { color: var(--faint); font-size: 13px; }
tr.model td { font-weight: 620; }
tr.model td .soft { font-weight: 400; }
.bars { min-width: 48px; width: 20%; }
div.bar { height: 9px; border-radius: 0 4px 4px 0; background: var(--c0); opacity: 0.85; min-width: 2px; }
.lane { background: var(--track); border-radius: 0 4px 4px 0; }
.dimension { color: var(--soft); padding-right: 18px; }
.case { display: grid; grid-template-columns: 78px minmax(0, 1fr); gap: 2px 14px; padding: 12px 0; }
.case + .case { border-top: 1px solid var(--grid); }
.case .share { font-size: 19px; font-weight: 620; font-variant-numeric: tabular-nums; }
.case .share.e0 { color: var(--e0); } .case .share.e1 { color: var(--e1); }
.case .share.e2 { color: var(--soft); } .case .share.e3, .case .share.e4 { color: var(--e3); }
.case .problem { font-weight: 560; overflow-wrap: anywhere; }
.case dl { display: grid; grid-template-columns: auto auto minmax(0, 1fr); gap: 1px 12px;
  margin: 4px 0 0; grid-column: 2; font-size: 13.5px; }
.case dt, .case dd.time { color: var(--soft); }
.case dd { margin: 0; }
.case dd.time { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: 12.5px/1.6 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
mark { background: var(--mark); color: inherit; border-radius: 3px; padding: 0 2px; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 20px; margin: 8px 0 0;
  font-size: 14px; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 900px) {
  .pair { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .pair.tuned { gap: 20px; }
  .tiles { grid-template-columns: repeat(3, 1fr); }
  .tile.first { grid-column: 1 / -1; }
  .tile.first .value { font-size: 40px; }
}
@media (max-width: 560px) {
  main { padding: 20px 12px 40px; }
  section { padding: 16px 14px; border-radius: 10px; }
  h1 { font-size: 22px; }
  .lead { font-size: 15.5px; }
  .tiles { grid-template-columns: repeat(2, 1fr); gap: 8px; }
  .tile { padding: 10px 12px; }
  .tile .value { font-size: 23px; }
  .case { grid-template-columns: minmax(0, 1fr); }
  .case dl { grid-column: 1; grid-template-columns: auto minmax(0, 1fr); }
  .case dd.config { grid-column: 1 / -1; }
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .facts dd { margin-bottom: 8px; }
}
@media print {
  :root { --page: #fff; }
  body { font-size: 12px; }
  main { max-width: none; padding: 0; }
  section, .tile, .case { break-inside: avoid; }
  .pair { grid-template-columns: 1fr 1fr; }
  .scroll { overflow: visible; }
  .bar, .lane, svg, mark { print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
}
)css";
}

}  // namespace

std::string page_style() { return concat(plot_style(), layout_style()); }

}  // namespace foretune::report_internal
