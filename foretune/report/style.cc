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

std::string plot_style() {
  return concat(palette(), R"css(
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  fill: var(--soft); font-variant-numeric: tabular-nums; }
svg text.name { fill: var(--ink); font-size: 12.5px; }
svg text.note { fill: var(--faint); font-size: 11.5px; }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--axis); stroke-width: 1; }
.guide { stroke: var(--axis); stroke-width: 1; stroke-dasharray: 2 4; }
.diagonal { stroke: var(--e1); stroke-width: 1.5; }
.series { fill: none; stroke-width: 1.9; stroke-linejoin: round; stroke-linecap: round; }
.series.c0 { stroke-width: 3.2; }
.series.thin { stroke-width: 1; stroke-opacity: 0.6; }
.series.whole { stroke-width: 2.2; }
.mark { stroke: var(--surface); stroke-width: 1.5; }
.dot { stroke: var(--surface); stroke-width: 1; fill-opacity: 0.92; }
.dot:hover, .mark:hover { stroke: var(--ink); stroke-width: 2; }
.cloud { fill: none; stroke: var(--c0); stroke-width: 4.5; stroke-linecap: round;
  stroke-opacity: 0.5; }
.cloud.dense { stroke-width: 3; stroke-opacity: 0.28; }
.trial { fill: var(--c0); fill-opacity: 0.45; }
.trial.missed { fill: var(--faint); fill-opacity: 0.5; }
.trial.kept { fill: none; stroke: var(--c1); stroke-width: 1.3; }
.trial.front { fill: var(--c2); fill-opacity: 1; }
.trial:hover { stroke: var(--ink); stroke-width: 2; }
.cloud.met { stroke-opacity: 0.35; }
.cloud.kept { stroke: var(--c1); }
.cloud.missed { stroke: var(--faint); stroke-opacity: 0.25; }
.step { fill: none; stroke: var(--c2); stroke-width: 1.8; stroke-linejoin: round; }
.step.alone { stroke-width: 1.2; stroke-dasharray: 4 3; }
.forbidden { fill: var(--e0); fill-opacity: 0.11; }
.forbidden.loose { fill-opacity: 0.05; }
.limit { stroke: var(--e0); stroke-width: 1.3; }
.limit.loose { stroke-dasharray: 4 3; }
.break { stroke: var(--soft); stroke-width: 1.2; }
svg text.tag { fill: var(--ink); paint-order: stroke; stroke: var(--surface); stroke-width: 3px;
  stroke-linejoin: round; }
svg text.note.tag { fill: var(--soft); }
.sheet { fill: var(--surface); }
.series.c0 { stroke: var(--c0); } .series.c1 { stroke: var(--c1); } .series.c2 { stroke: var(--c2); }
.series.c3 { stroke: var(--c3); } .series.c4 { stroke: var(--c4); } .series.c5 { stroke: var(--c5); }
.series.c6 { stroke: var(--c6); }
.mark.c0 { fill: var(--c0); } .mark.c1 { fill: var(--c1); } .mark.c2 { fill: var(--c2); }
.mark.c3 { fill: var(--c3); } .mark.c4 { fill: var(--c4); } .mark.c5 { fill: var(--c5); }
.mark.c6 { fill: var(--c6); }
.dot.e0 { fill: var(--e0); background: var(--e0); } .dot.e1 { fill: var(--e1); background: var(--e1); }
.dot.e2 { fill: var(--e2); background: var(--e2); } .dot.e3 { fill: var(--e3); background: var(--e3); }
.dot.e4 { fill: var(--e4); background: var(--e4); }
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
h2 { font-size: 17px; font-weight: 650; margin: 0 0 2px; }
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
.key.c0 { background: var(--c0); height: 4px; } .key.c1 { background: var(--c1); }
.key.c2 { background: var(--c2); } .key.c3 { background: var(--c3); }
.key.c4 { background: var(--c4); } .key.c5 { background: var(--c5); }
.key.c6 { background: var(--c6); }
.legend { display: flex; flex-wrap: wrap; gap: 3px 16px; margin: 8px 0 0; color: var(--soft);
  font-size: 13px; }
.legend i { display: inline-block; vertical-align: middle; margin-right: 6px; }
.legend .key { width: 18px; height: 3px; border-radius: 2px; }
.legend .dot { width: 10px; height: 10px; border-radius: 50%; }
.legend svg { display: inline-block; width: 20px; height: 14px; vertical-align: -2px; margin-right: 6px; }
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
.plot { min-width: 150px; width: 24%; }
.bars { min-width: 48px; width: 20%; }
.track { position: relative; height: 18px; }
.track::before { content: ""; position: absolute; left: 0; right: 0; top: 8px; height: 2px;
  background: var(--track); border-radius: 1px; }
.track span { position: absolute; display: block; }
.whisker { top: 7px; height: 4px; border-radius: 2px; background: var(--faint); opacity: 0.55;
  min-width: 2px; }
.point { top: 4px; width: 10px; height: 10px; margin-left: -5px; border-radius: 50%;
  background: var(--soft); border: 1.5px solid var(--surface); }
.tail { top: 3px; width: 2px; height: 12px; margin-left: -1px; background: var(--faint); }
tr.model .point { background: var(--c0); width: 14px; height: 14px; top: 2px; margin-left: -7px; }
tr.model .whisker { background: var(--c0); }
tr.model .tail { background: var(--c0); }
.bar { height: 9px; border-radius: 0 4px 4px 0; background: var(--c0); opacity: 0.85; min-width: 2px; }
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
  svg text { font-size: 14.5px; }
  svg text.name { font-size: 15px; }
  svg text.note { font-size: 13.5px; }
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
  .whisker, .point, .tail, .bar, .dot, .key, mark { print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
}
)css";
}

}  // namespace

// The layout comes last: on narrow screens it makes the letters of plots larger.
std::string page_style() { return concat(plot_style(), layout_style()); }

}  // namespace foretune::report_internal
