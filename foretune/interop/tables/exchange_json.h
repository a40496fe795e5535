// JSON documents inside the module: parsing with limits, our documents and torch-diode's.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/formats/json.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/problem/problem.h"

namespace foretune::dataset_internal {

using formats::integer_at;
using formats::integer_of;
using formats::Json;
using formats::member;
using formats::parse_json;
using formats::text_at;

// Refuses documents that are truncated, nested too deeply, or claim more bytes than they have.
Status check_msgpack(std::span<const std::byte> bytes);
// Accepts JSON even where `msgpack` is set.
Result<Json> parse_document(std::span<const std::byte> bytes, bool msgpack);

bool is_own_document(const Json& document);
Result<Dataset> import_own_document(const Json& document, ImportReport* report);
Json export_own_document(const Dataset& dataset, bool short_numbers);

// Data set documents of torch-diode, including its older schema.
bool is_diode_document(const Json& document);
Result<Dataset> import_diode_document(const Json& document, const ImportFacts& facts,
                                      ImportReport* report);
// Failed configs have the time +infinity, as in torch-diode's own documents.
Result<Json> export_diode_document(const Dataset& dataset, ImportReport* report);
// Returns the document as Python writes it, with the bare word Infinity.
std::string diode_text(const Json& document);

// True for one run of CK Tile's benchmarks or a batch of runs; exchange_ck.h reads them.
bool is_ck_document(const Json& document);

// Converts a shape of torch-diode into a problem.
Result<Problem> diode_problem(const Json& shape, std::string_view operation);
// True when the result is stored by columns: its sizes are given as (B, N, M).
bool is_transposed(const Json& shape, const Problem& problem);
inline constexpr const char* kTransposedNote =
    "its result is stored transposed, which no layout here says; taken as row-major";

}  // namespace foretune::dataset_internal
