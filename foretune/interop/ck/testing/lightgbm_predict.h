// LightGBM's own predictions, for tests. Thread safety: free functions.
#pragma once

#include <LightGBM/c_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace foretune {

inline void check_lightgbm(int result) { ASSERT_EQ(result, 0) << LGBM_GetLastError(); }

// Returns the prediction for one row of features.
inline double lightgbm_prediction(BoosterHandle booster, const std::vector<double>& row) {
  double out = 0;
  std::int64_t length = 0;
  check_lightgbm(LGBM_BoosterPredictForMat(
      booster, row.data(), C_API_DTYPE_FLOAT64, 1, static_cast<std::int32_t>(row.size()), 1,
      C_API_PREDICT_NORMAL, 0, -1, "num_threads=1", &length, &out));
  return out;
}

}  // namespace foretune
