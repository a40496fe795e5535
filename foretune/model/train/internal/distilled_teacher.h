// The exact model asked about many problems at once. Internal to the trainer.
// Thread safety: scores() from one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/model/model_file.h"
#include "foretune/model/scorer.h"
#include "foretune/space/parametric_space.h"

namespace foretune::train_internal {

class DistillationTeacher {
 public:
  // `model` must outlive the teacher.
  static Result<DistillationTeacher> create(const Model& model, std::size_t threads);

  // One score per candidate for each problem, problem after problem: that of the candidate's
  // canonical form, as the selector has it; NaN where the candidate is not legal.
  Result<std::vector<float>> scores(std::span<const Problem> problems,
                                    std::span<const std::uint32_t> candidates) const;

 private:
  explicit DistillationTeacher(const Model& model, std::size_t threads)
      : model_(model), threads_(threads) {}
  [[nodiscard]] std::vector<std::uint32_t> forms(std::span<const Problem> problems,
                                                 std::span<const std::uint32_t> candidates,
                                                 ThreadPool& pool) const;

  const Model& model_;
  std::size_t threads_;
  std::shared_ptr<const CompiledSpace> space_;
  std::unique_ptr<Scorer> scorer_;
  std::unordered_map<Config, std::uint32_t> positions_;
};

}  // namespace foretune::train_internal
