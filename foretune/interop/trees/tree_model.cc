#include "foretune/interop/trees/tree_model.h"

#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/formats/gzip.h"
#include "foretune/interop/trees/lightgbm_text.h"
#include "foretune/interop/trees/xgboost_json.h"

namespace foretune {

double OutputTransform::apply(double sum) const {
  switch (kind) {
    case Kind::kIdentity:
      return sum;
    case Kind::kExp:
      return std::exp(sum);
    case Kind::kSigmoid:
      return 1.0 / (1.0 + std::exp(-slope * sum));
    case Kind::kSignedSquare:
      return (sum > 0 ? 1.0 : sum < 0 ? -1.0 : 0.0) * sum * sum;
    case Kind::kLogOnePlusExp:
      return std::log1p(std::exp(sum));
  }
  return sum;
}

double predict(const TreeModel& model, std::span<const double> row) {
  const double sum = predict_reference(model.forest, row);
  return model.output.apply(model.average ? sum / static_cast<double>(model.forest.trees.size())
                                          : sum);
}

Result<TreeModel> parse_tree_model(std::span<const std::byte> bytes) {
  std::vector<std::byte> inflated;
  if (formats::is_gzip(bytes)) {
    FORETUNE_TRY(inflated, formats::inflate_gzip(bytes, formats::kMaxInflatedBytes));
    bytes = inflated;
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, 4) == "tree") {
    return parse_lightgbm_text(text);
  }
  if (trim(text).substr(0, 1) == "{") {
    return parse_xgboost_json(text);
  }
  return fail(ErrorCode::kUnsupported, "this is neither LightGBM's model text, which begins with ",
              "'tree', nor XGBoost's JSON");
}

Result<TreeModel> read_tree_model(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  auto model = parse_tree_model(bytes);
  return model ? std::move(model) : fail_because(model.error(), path.string());
}

}  // namespace foretune
