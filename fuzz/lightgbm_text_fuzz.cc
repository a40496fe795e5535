// LightGBM model text: a valid forest or a reason, and a forest that can be evaluated.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "foretune/models/infer/forest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto forest = foretune::parse_lightgbm_text(text);
  if (!forest) {
    if (forest.error().message.empty()) {
      std::abort();
    }
    return 0;
  }
  if (!forest->validate()) {
    std::abort();
  }
  if (forest->feature_count <= 1000) {
    const std::vector<double> row(forest->feature_count, 0.5);
    static_cast<void>(foretune::predict_reference(*forest, row));
  }
  return 0;
}
