// XGBoost JSON models, any bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretune/interop/trees/xgboost_json.h"
#include "fuzz/tree_model_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_tree_model(foretune::parse_xgboost_json({reinterpret_cast<const char*>(data), size}));
  return 0;
}
