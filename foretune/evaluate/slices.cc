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

// The families of CK Tile's evaluation: sizes below each limit.
constexpr std::array<std::int64_t, 3> kCkM{32, 256, 4096};
constexpr std::array<std::string_view, 4> kCkMNames{"tiny, below 32", "small, below 256",
                                                    "medium, below 4096", "large"};
constexpr std::array<std::int64_t, 2> kCkK{512, 4096};
constexpr std::array<std::string_view, 3> kCkKNames{"shallow, below 512", "medium, below 4096",
                                                    "deep"};

Bucket ck_family(std::int64_t size, std::span<const std::int64_t> limits,
                 std::span<const std::string_view> names) {
  const auto index = static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end(), size) -
                                              limits.begin());
  return {static_cast<std::int64_t>(index), std::string(names[index])};
}

// What a product looks like: which of its sizes leads by a factor of four.
Bucket shape_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kMuch = 4;
  if (m == 1 || n == 1) {
    return {0, "matrix times vector"};
  }
  if (k >= kMuch * std::max(m, n)) {
    return {1, "deep: k leads"};
  }
  if (m >= kMuch * n) {
    return {2, "tall: m leads n"};
  }
  return n >= kMuch * m ? Bucket{3, "wide: n leads m"} : Bucket{4, "near square"};
}

// The parameters that say how a kernel overlaps loading and computing.
constexpr std::array<std::string_view, 2> kPipelineParameters{"pipeline", "num_stages"};

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
      add_slice(dimension, bucket.first, bucket.second);
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
    add("shape", [&](std::uint32_t id) {
      return shape_of(size(id, GemmField::kM), size(id, GemmField::kN), size(id, GemmField::kK));
    });
    add("m family (CK)",
        [&](std::uint32_t id) { return ck_family(size(id, GemmField::kM), kCkM, kCkMNames); });
    add("k regime (CK)",
        [&](std::uint32_t id) { return ck_family(size(id, GemmField::kK), kCkK, kCkKNames); });
    add_label("operation", static_cast<std::size_t>(GemmField::kOperation));
    add_label("dtype", static_cast<std::size_t>(GemmField::kDtype));
    add_label("layout", static_cast<std::size_t>(GemmField::kLayout));
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

  // Within the configs of one pipeline: its best-ranked against its fastest, on the problems that
  // have a time of it.
  void add_pipelines(std::span<const RankedProblem* const> ranked) {
    const ConfigSchema& schema = input_.dataset.header().config_schema;
    for (const std::string_view name : kPipelineParameters) {
      if (const auto parameter = schema.find(name);
          parameter && schema.kind == SchemaKind::kParametric) {
        add_within(schema, *parameter, ranked);
        return;
      }
    }
  }

  std::vector<Slice> take() { return std::move(out_); }

 private:
  void add_within(const ConfigSchema& schema, std::size_t parameter,
                  std::span<const RankedProblem* const> ranked) {
    struct Pick {
      std::optional<double> efficiency;  // of the best-ranked
      double best = 0;                   // efficiency of the fastest
    };
    std::map<std::int32_t, std::vector<double>> by_value;
    for (const RankedProblem* entry : ranked) {
      std::map<std::int32_t, Pick> picks;
      for (const std::uint32_t config : entry->configs) {
        const Config& words = input_.dataset.configs()[config];
        const MeasuredCandidate* candidate = input_.times.find(entry->problem, config);
        if (candidate == nullptr || parameter >= words.words.size()) {
          continue;
        }
        const double efficiency = input_.times.compare(entry->problem, *candidate).efficiency;
        Pick& pick = picks[words.words[parameter]];
        pick.efficiency = pick.efficiency.value_or(efficiency);
        pick.best = std::max(pick.best, candidate->state == MeasuredState::kOk ? efficiency : 0.0);
      }
      for (const auto& [value, pick] : picks) {
        if (pick.best > 0) {
          by_value[value].push_back(std::min(1.0, *pick.efficiency / pick.best));
        }
      }
    }
    const Parameter& described = schema.parameters[parameter];
    for (const auto& [value, efficiencies] : by_value) {
      const auto label = static_cast<std::size_t>(value);
      add_slice(concat("within ", described.name),
                label < described.labels.size() ? described.labels[label] : concat(value),
                efficiencies);
    }
  }

  void add_slice(const std::string& dimension, const std::string& value,
                 const std::vector<double>& efficiencies) {
    out_.push_back({dimension, value, efficiencies.size(), mean(efficiencies),
                    quantile(efficiencies, 0.1),
                    *std::min_element(efficiencies.begin(), efficiencies.end())});
  }

  static constexpr std::size_t kFewValues = 5;
  [[nodiscard]] const Problem& problem(std::uint32_t id) const {
    return input_.dataset.problems()[id];
  }

  const BaselineInput& input_;
  const PickerResult& model_;
  std::vector<Slice> out_;
};

}  // namespace

void describe_slices(const DiagnosisInput& diagnosis, Evaluation& out) {
  const BaselineInput& input = diagnosis.input;
  Slices slices(input, out.model);
  const ProblemType type = input.dataset.header().problem_type;
  if (type == ProblemType::kGemm) {
    slices.add_gemm();
  } else {
    slices.add_any(type);
  }
  slices.add_best_time();
  slices.add_pipelines(diagnosis.ranked);
  out.slices = slices.take();
}

}  // namespace foretune::evaluate_internal
