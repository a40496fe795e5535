// Reads and writes CK Tile's formats, inside the module.
// Thread safety: free functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/interop/tables/exchange.h"

namespace foretune::dataset_internal {

// Returns which of CK Tile's formats a text has, judged by its beginning; nothing for other texts.
std::optional<ExchangeFormat> detect_ck(std::string_view text);

// Imports one run, or a batch with its results.
Result<Dataset> import_ck_json(std::string_view text, const ImportFacts& facts,
                               ImportReport* report);

// True when a line announces the shape of the runs that follow: "Shape 3: M=16 N=32 K=64 ...", or
// "Shape 3: N=16 C=256 K=128 G=1 Hi=28 ..." of a convolution.
bool is_ck_shape_line(std::string_view line);
Result<Dataset> import_ck_log(std::string_view text, const ImportFacts& facts,
                              ImportReport* report);

bool is_ck_csv(std::string_view text);
Result<Dataset> import_ck_csv(std::string_view text, const ImportFacts& facts,
                              ImportReport* report);
// Writes the columns of CK's own data sets. Errors: kUnsupported for configs of another schema.
Result<std::string> export_ck_csv_text(const Dataset& dataset, ImportReport* report);

}  // namespace foretune::dataset_internal
