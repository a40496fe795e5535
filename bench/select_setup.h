// The inputs of bench/select: the data, the forest that LightGBM trains on it, the candidates and
// problems, and LightGBM itself behind its C API.
#pragma once

#include <LightGBM/c_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/hardware.h"
#include "foretune/model/forest/forest.h"
#include "foretune/problem/problem.h"
#include "foretune/space/parametric_space.h"

namespace foretune::bench {

inline constexpr std::size_t kProblems = 64;
inline constexpr std::size_t kWidth = 6;

// Ends the program with a message.
[[noreturn]] void stop(std::string_view message);

template <class T>
T must(Result<T> result) {
  if (!result) {
    stop(result.error().message);
  }
  return *std::move(result);
}

// LightGBM's predictions on one thread.
class Booster {
 public:
  explicit Booster(const std::string& text);
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  ~Booster();
  // Predicts out.size() rows of `features` values: in one call, or in one call per row.
  void predict(const std::vector<double>& rows, std::size_t features,
               std::vector<double>& out) const;
  void predict_rows_singly(const std::vector<double>& rows, std::size_t features,
                           std::vector<double>& out);

 private:
  BoosterHandle handle_ = nullptr;
  FastConfigHandle fast_ = nullptr;
};

struct ForestSize {
  int trees = 500;
  int leaves = 127;
  std::string_view kept_by = "forest";  // the argument with the file that keeps it between runs
};

struct Setup {
  const FeatureTable* table = nullptr;
  Hardware hardware;
  Forest forest;
  std::string text;
  std::vector<Config> pool;
  std::vector<std::int32_t> words;
  std::vector<Problem> problems;

  [[nodiscard]] std::size_t features() const { return table->columns().size(); }
  // All rows of a problem, for LightGBM.
  void fill_rows(const Problem& problem, std::vector<double>& rows) const;
};

// Returns a space whose rules depend on the problem only, so that all candidates are scored.
SpaceDefinition make_space();
Setup make_setup(int argc, char** argv, const SpaceDefinition& space, const ForestSize& size = {});

}  // namespace foretune::bench
