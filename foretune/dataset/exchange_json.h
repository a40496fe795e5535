// JSON documents inside the module: parsing with limits, ours and torch-diode's.
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
#include "foretune/dataset/exchange.h"
#include "foretune/documents/json.h"
#include "foretune/problem/problem.h"

namespace foretune::dataset_internal {

using documents::integer_at;
using documents::integer_of;
using documents::Json;
using documents::member;
using documents::parse_json;
using documents::text_at;

// Refuses what is cut off, nested too deeply, or claims more than it holds.
Status check_msgpack(std::span<const std::byte> bytes);
// Takes JSON for what it is, even where MessagePack was announced.
Result<Json> parse_document(std::span<const std::byte> bytes, bool msgpack);

bool is_own_document(const Json& document);
Result<Dataset> import_own_document(const Json& document, ImportReport* report);
Json export_own_document(const Dataset& dataset, bool short_numbers);

// torch-diode's data set documents, its older schema included.
bool is_diode_document(const Json& document);
Result<Dataset> import_diode_document(const Json& document, const ImportFacts& facts,
                                      ImportReport* report);
// Failed configs have the time +infinity, as there.
Result<Json> export_diode_document(const Dataset& dataset, ImportReport* report);
// The document as Python writes it, with the bare word Infinity.
std::string diode_text(const Json& document);

// One run of CK Tile's benchmarks, or a batch of them; exchange_ck.h reads it.
bool is_ck_document(const Json& document);

// A shape of theirs as a problem.
Result<Problem> diode_problem(const Json& shape, std::string_view operation);
// Whether the result is stored by columns: its sizes are given as (B, N, M).
bool is_transposed(const Json& shape, const Problem& problem);
inline constexpr const char* kTransposedNote =
    "its result is stored transposed, which no layout here says; taken as row-major";

}  // namespace foretune::dataset_internal
