#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/diagnosis.h"
#include "foretune/problem/gemm.h"

namespace foretune::evaluate_internal {
namespace {

// Where a problem belongs in one dimension; slices are listed by `order`.
struct Bucket {
  std::int64_t order = 0;
  std::string value;
};

// Buckets "up to 64", "65 to 512", ..., "above 4096" for limits 64, 512, ..., 4096.
Bucket bucket_of(std::int64_t size, std::span<const std::int64_t> limits) {
  const auto above = std::lower_bound(limits.begin(), limits.end(), size);
  const auto index = static_cast<std::size_t>(above - limits.begin());
  const auto order = static_cast<std::int64_t>(index);
  if (index == limits.size()) {
    return {order, concat("above ", limits.back())};
  }
  if (index == 0) {
    return {order, limits[0] == 1 ? std::string("1") : concat("up to ", limits[0])};
  }
  return {order, concat(limits[index - 1] + 1, " to ", limits[index])};
}

Bucket time_bucket(double best_ns) {
  if (best_ns < 1e4) {
    return {0, "under 10 us"};
  }
  if (best_ns < 1e5) {
    return {1, "10 to 100 us"};
  }
  return best_ns < 1e6 ? Bucket{2, "100 us to 1 ms"} : Bucket{3, "1 ms and more"};
}

class Slices {
 public:
  Slices(const BaselineInput& input, const PickerResult& model) : input_(input), model_(model) {}

  // `bucket_of_problem(problem)` gives a Bucket.
  template <class BucketOf>
  void add(const std::string& dimension, const BucketOf& bucket_of_problem) {
    std::map<std::int64_t, std::pair<std::string, std::vector<double>>> buckets;
    for (std::size_t i = 0; i < model_.problem_ids.size(); ++i) {
      Bucket bucket = bucket_of_problem(model_.problem_ids[i]);
      auto& [value, efficiencies] = buckets[bucket.order];
      value = std::move(bucket.value);
      efficiencies.push_back(model_.efficiency[i]);
    }
    for (const auto& [order, bucket] : buckets) {
      const std::vector<double>& efficiencies = bucket.second;
      out_.push_back({dimension, bucket.first, efficiencies.size(), mean(efficiencies),
                      quantile(efficiencies, 0.1),
                      *std::min_element(efficiencies.begin(), efficiencies.end())});
    }
  }

  void add_label(const std::string& dimension, std::size_t field) {
    add(dimension, [&](std::uint32_t id) {
      return Bucket{problem(id).field(field), problem(id).field_text(field)};
    });
  }

  void add_gemm() {
    static constexpr std::array<std::int64_t, 4> kM{1, 16, 128, 1024};
    static constexpr std::array<std::int64_t, 3> kK{64, 512, 4096};
    const auto size = [&](std::uint32_t id, GemmField field) {
      return problem(id).field(static_cast<std::size_t>(field));
    };
    add("m regime", [&](std::uint32_t id) { return bucket_of(size(id, GemmField::kM), kM); });
    add("k depth", [&](std::uint32_t id) { return bucket_of(size(id, GemmField::kK), kK); });
    add_label("operation", static_cast<std::size_t>(GemmField::kOperation));
    add_label("dtype", static_cast<std::size_t>(GemmField::kDtype));
  }

  // Labels, and sizes by value or, when they are many, by thirds of the problems.
  void add_any(ProblemType type) {
    const ProblemSchema* schema = find_problem_schema(type);
    if (schema == nullptr) {
      return;
    }
    for (std::size_t field = 0; field < schema->fields.size(); ++field) {
      const std::string name(schema->fields[field].name);
      std::vector<double> values;
      for (const std::uint32_t id : model_.problem_ids) {
        values.push_back(static_cast<double>(problem(id).field(field)));
      }
      const std::set<double> distinct(values.begin(), values.end());
      if (!schema->fields[field].labels.empty() || distinct.size() <= kFewValues) {
        add_label(name, field);
        continue;
      }
      std::array<std::int64_t, 2> limits{};
      limits[0] = static_cast<std::int64_t>(std::floor(quantile(values, 1.0 / 3)));
      limits[1] = static_cast<std::int64_t>(std::floor(quantile(values, 2.0 / 3)));
      if (limits[0] == limits[1]) {
        ++limits[1];
      }
      add(name, [&](std::uint32_t id) { return bucket_of(problem(id).field(field), limits); });
    }
  }

  void add_best_time() {
    add("best time", [&](std::uint32_t id) { return time_bucket(input_.times.oracle_ns(id)); });
  }

  std::vector<Slice> take() { return std::move(out_); }

 private:
  static constexpr std::size_t kFewValues = 5;
  [[nodiscard]] const Problem& problem(std::uint32_t id) const {
    return input_.dataset.problems()[id];
  }

  const BaselineInput& input_;
  const PickerResult& model_;
  std::vector<Slice> out_;
};

}  // namespace

void describe_slices(const BaselineInput& input, Evaluation& out) {
  Slices slices(input, out.model);
  const ProblemType type = input.dataset.header().problem_type;
  if (type == ProblemType::kGemm) {
    slices.add_gemm();
  } else {
    slices.add_any(type);
  }
  slices.add_best_time();
  out.slices = slices.take();
}

}  // namespace foretune::evaluate_internal
