#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/dataset/split.h"
#include "foretune/evaluate/internal/diagnosis.h"
#include "foretune/problem/problem_type.h"

namespace foretune::evaluate_internal {
namespace {

SliceValue time_bucket(double best_ns) {
  if (best_ns < 1e4) {
    return {0, "under 10 us"};
  }
  if (best_ns < 1e5) {
    return {1, "10 to 100 us"};
  }
  return best_ns < 1e6 ? SliceValue{2, "100 us to 1 ms"} : SliceValue{3, "1 ms and more"};
}

// The parameters that say how a kernel overlaps loading and computing.
constexpr std::array<std::string_view, 2> kPipelineParameters{"pipeline", "num_stages"};

class Slices {
 public:
  Slices(const BaselineInput& input, const PickerResult& model) : input_(input), model_(model) {}

  // `bucket_of_problem(problem)` gives a SliceValue.
  template <class BucketOf>
  void add(const std::string& dimension, const BucketOf& bucket_of_problem) {
    std::map<std::int64_t, std::pair<std::string, std::vector<double>>> buckets;
    for (std::size_t i = 0; i < model_.problem_ids.size(); ++i) {
      SliceValue bucket = bucket_of_problem(model_.problem_ids[i]);
      auto& [value, efficiencies] = buckets[bucket.order];
      value = std::move(bucket.text);
      efficiencies.push_back(model_.efficiency[i]);
    }
    for (const auto& [order, bucket] : buckets) {
      add_slice(dimension, bucket.first, bucket.second);
    }
  }

  void add_all(std::span<const ProblemSlice> slices) {
    for (const ProblemSlice& slice : slices) {
      add(std::string(slice.name), [&](std::uint32_t id) { return slice.value(problem(id)); });
    }
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
        add(name, [&](std::uint32_t id) { return slice_by_field(problem(id), field); });
        continue;
      }
      std::array<std::int64_t, 2> limits{};
      limits[0] = static_cast<std::int64_t>(std::floor(quantile(values, 1.0 / 3)));
      limits[1] = static_cast<std::int64_t>(std::floor(quantile(values, 2.0 / 3)));
      if (limits[0] == limits[1]) {
        ++limits[1];
      }
      add(name, [&](std::uint32_t id) { return slice_by_size(problem(id).field(field), limits); });
    }
  }

  // Problems whose main sizes, or weights at another batch or map size, the training set has. The
  // first are closer to what the model knows, and a headline from them alone would flatter.
  void add_novelty(const Dataset& training) {
    for (const GroupKey key : {GroupKey::kSizes, GroupKey::kWeights}) {
      std::unordered_set<std::uint64_t> known;
      for (const Problem& each : training.problems()) {
        known.insert(group_of(each, key));
      }
      add(std::string(to_string(key)), [&](std::uint32_t id) {
        return known.contains(group_of(problem(id), key)) ? SliceValue{0, "in the training set"}
                                                          : SliceValue{1, "new"};
      });
    }
  }

  void add_machines() {
    const std::vector<Fingerprint> machines = input_.dataset.told_apart();
    if (machines.empty()) {
      return;
    }
    add("machine", [&](std::uint32_t id) {
      const auto found = std::find_if(machines.begin(), machines.end(), [&](const auto& machine) {
        return machine.digest() == problem(id).machine();
      });
      return SliceValue{found - machines.begin(), hex_text(problem(id).machine())};
    });
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
    struct BestOfValue {
      std::optional<double> efficiency;  // of the best-ranked
      double best = 0;                   // efficiency of the fastest
    };
    std::map<std::int32_t, std::vector<double>> by_value;
    for (const RankedProblem* entry : ranked) {
      std::map<std::int32_t, BestOfValue> picks;
      for (const std::uint32_t config : entry->configs) {
        const Config& words = input_.dataset.configs()[config];
        const MeasuredCandidate* candidate = input_.times.find(entry->problem, config);
        if (candidate == nullptr || parameter >= words.words.size()) {
          continue;
        }
        const double efficiency = input_.times.compare(entry->problem, *candidate).efficiency;
        BestOfValue& pick = picks[words.words[parameter]];
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
  const ProblemTypeInfo* info = find_problem_type(type);
  if (info != nullptr && !info->slices.empty()) {
    slices.add_all(info->slices);
  } else {
    slices.add_any(type);
  }
  if (input.options.training != nullptr) {
    slices.add_novelty(*input.options.training);
  }
  slices.add_machines();
  slices.add_best_time();
  slices.add_pipelines(diagnosis.ranked);
  out.slices = slices.take();
}

}  // namespace foretune::evaluate_internal
