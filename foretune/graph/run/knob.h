// The numbers and names of layers' variants, as configs of networks hold them: one number for each
// layer, 0 for an exact one.
//
//   knob_text(knob_of({.type = DataType::kI8, .skip_rows = 2}))   "i8+rows2.0"
//
// Thread safety: free functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/graph/run/variant.h"

namespace foretune::graph {

// Returns the number of a variant whose periods are below 8. Stored in files.
[[nodiscard]] std::int32_t knob_of(const LayerVariant& variant);
// Errors: kInvalidArgument for a number that no variant has.
Result<LayerVariant> variant_of_knob(std::int32_t knob);

// Returns the name: a type, then what is left out ("f32", "bf16+rows2.1", "i8+taps3.0+columns4.2").
[[nodiscard]] std::string knob_text(std::int32_t knob);
// Errors: kInvalidArgument, naming the part that makes no sense.
Result<std::int32_t> parse_knob(std::string_view text);

// Returns the knobs of a catalogue: "exact" (f32), "types" (f32, bf16, i8), "points" (rows and
// columns left out in f32), "all" (the three types, with rows, columns and points of filters left
// out), "default" (those of "all" that pay on some layers, docs/benchmarks.md: bf16 alone, and
// columns only 1 of 2), or several names of knobs between commas. Errors: kInvalidArgument.
Result<std::vector<std::int32_t>> knob_catalogue(std::string_view text);

// Returns the operations of a network that have knobs, in its order.
[[nodiscard]] std::vector<const Node*> layers_of(const Network& network);

}  // namespace foretune::graph
