// The vocabulary of all plots: formats' drawing by short names, and one palette. Internal to the
// module. Thread safety: free functions without state.
#pragma once

#include <string_view>

#include "foretune/formats/svg.h"

namespace foretune::report_internal {

using formats::Anchor;
using formats::Axis;
using formats::Mark;
using formats::Panel;
using formats::Range;
using formats::Svg;
using formats::Tick;

// Colours as variables of CSS, for light and for dark: surfaces and letters, efficiencies from e0
// (worst) to e4, shares of the fastest from h0 to h4, series from c0 to c6.
std::string_view palette();

}  // namespace foretune::report_internal
