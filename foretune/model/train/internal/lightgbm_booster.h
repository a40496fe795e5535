// LightGBM's C API behind a class: matrix in, trees out. Internal to the trainer.
// Thread safety: one booster belongs to one thread; several may be at work at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/forest/forest.h"

namespace foretune::train_internal {

// Row-major features of all rows.
struct Matrix {
  std::vector<double> values;
  std::size_t columns = 0;
  std::vector<std::size_t> left_out;  // columns that no tree may split
  [[nodiscard]] std::size_t rows() const { return columns == 0 ? 0 : values.size() / columns; }
};

// Rows with what LightGBM's own objectives want to know of them; a custom objective needs `rows`
// and `start` only.
struct BoosterRows {
  std::span<const std::uint32_t> rows;  // of the matrix; may be empty for validation
  std::vector<double> start;            // prediction before the first tree, per row
  std::vector<float> label;             // per row
  std::vector<float> weight;            // per row
  std::vector<std::int32_t> group;      // sizes of the queries, whose rows follow each other
};

class Booster {
 public:
  // `parameters` in LightGBM's own form: "num_leaves=63 learning_rate=0.05".
  static Result<std::unique_ptr<Booster>> create(const Matrix& matrix, const BoosterRows& train,
                                                 const BoosterRows& valid,
                                                 const std::string& parameters);
  ~Booster();
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;

  // Adds one tree that follows the gradients (one per training row). False when nothing could be
  // split any more.
  Result<bool> update(std::span<const float> gradients, std::span<const float> hessians);
  // The same with LightGBM's own objective.
  Result<bool> update();
  // The first of the metrics on the validation rows.
  Result<double> metric();
  // Current predictions, start included: of the training rows (0) or the validation rows (1).
  Status predictions(int which, std::vector<double>& out);
  // The first `trees` trees (0: all).
  Result<Forest> forest(std::size_t trees);
  Result<std::string> text(std::size_t trees);
  // Gain of the splits, per column.
  Result<std::vector<double>> gains();

 private:
  Booster() = default;
  std::size_t columns_ = 0;
  void* train_data_ = nullptr;
  void* valid_data_ = nullptr;
  void* booster_ = nullptr;
};

}  // namespace foretune::train_internal
