// JSON documents inside the module: parsing with limits, ours and torch-diode's.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/exchange.h"

namespace foretune::dataset_internal {

using Json = nlohmann::json;

// Refuses what is cut off, nested too deeply, or claims more than it holds.
Status check_msgpack(std::span<const std::byte> bytes);
Result<Json> parse_document(std::span<const std::byte> bytes, bool msgpack);
std::string quote_infinities(std::string_view text);

bool is_own_document(const Json& document);
Result<Dataset> import_own_document(const Json& document, ImportReport* report);
Json export_own_document(const Dataset& dataset);

// torch-diode's data set documents, its older schema included.
bool is_diode_document(const Json& document);
Result<Dataset> import_diode_document(const Json& document, ImportReport* report);
Result<Json> export_diode_document(const Dataset& dataset);

}  // namespace foretune::dataset_internal
