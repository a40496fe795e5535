// Schedules of loop nests. All columns are of the pair: the loops of a config mean nothing without
// the computation. They are those of loop/nest_features.h behind two of their own.
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/features/column_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest_features.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/problem/problem_type.h"

namespace foretune::features_internal {
namespace {

constexpr std::array kProblemColumns{
    of_problem("log2_flops", "log2 of the operations"),
    of_problem("log2_bytes", "log2 of the bytes of all operands"),
    of_problem("log2_intensity", "log2 of operations per byte"),
    of_problem("log2_bytes_over_l2", "log2 of the bytes of all operands over the L2 cache"),
    of_problem("vector_bytes", "bytes of a vector register"),
};

constexpr FeatureInfo kCompiles =
    of_both("compiles", "1 where the schedule can be compiled; else all others are 0");

bool is_loop_nest(ProblemType type) {
  const ProblemTypeInfo* const info = find_problem_type(type);
  return info != nullptr && info->schema.name.starts_with("nest_");
}

class LoopNestTable final : public FeatureTable {
 public:
  LoopNestTable() : columns_(kProblemColumns.begin(), kProblemColumns.end()) {
    columns_.push_back(kCompiles);
    for (const std::string& name : loop::nest_feature_names()) {
      columns_.push_back({name, FeatureKind::kInteraction, "see loop/nest_features.h"});
    }
  }

  std::string_view name() const override { return "loop-nest"; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    return is_loop_nest(type) && schema.id() == loop::schedule_schema().id()
               ? Support::yes()
               : Support::no("loop-nest describes schedules of loop nests");
  }

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const ProblemWork work = problem_work(problem).value_or(ProblemWork{1, 1});
    const double l2 = hardware.get(HardwareValue::kL2Bytes);
    out[0] = std::log2(std::max(1.0, work.flops));
    out[1] = std::log2(std::max(1.0, work.bytes));
    out[2] = out[0] - out[1];
    out[3] = out[1] - std::log2(l2 > 0 ? l2 : 1024.0 * 1024);
    out[4] = hardware.get(HardwareValue::kVectorBytes);
  }
  void config_row(std::span<const std::int32_t> /*words*/,
                  std::span<double> /*out*/) const override {}
  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    const std::size_t columns = columns_.size() - kProblemColumns.size();
    const auto computation = loop::computation_of(problem);
    const loop::VectorUnit unit = unit_of(hardware);
    const auto space = computation ? loop::ScheduleSpace::of_loops(*computation, unit, std::nullopt,
                                                                   {.max_loops = kMaxLoops})
                                   : nullptr;
    std::vector<double> row(columns - 1);
    Config config{.schema = loop::schedule_schema().id(), .words = {}};
    for (std::size_t i = 0; i < configs.size(); ++i) {
      bool compiles = false;
      if (space != nullptr) {
        config.words = Config::Words(configs[i]);
        const auto nest = space->nest(config);
        compiles = nest && loop::write_nest_features(*computation, *nest, unit, row);
      }
      out[i] = compiles ? 1 : 0;
      for (std::size_t c = 0; c < row.size(); ++c) {
        out[(c + 1) * stride + i] = compiles ? row[c] : 0;
      }
    }
  }

  std::unique_ptr<Space> space(const Problem& problem, const Hardware& hardware) const override {
    const auto computation = loop::computation_of(problem);
    return computation ? loop::ScheduleSpace::of_loops(*computation, unit_of(hardware)) : nullptr;
  }
  Support may_run(const Problem& problem, const Hardware& hardware,
                  const Config& config) const override {
    const auto computation = loop::computation_of(problem);
    if (!computation) {
      return Support::no(computation.error().message);
    }
    const loop::VectorUnit unit = unit_of(hardware);
    const auto nest =
        loop::ScheduleSpace::of_loops(*computation, unit, std::nullopt, {.max_loops = kMaxLoops})
            ->nest(config);
    if (!nest) {
      return Support::no(nest.error().message);
    }
    const auto lowered = loop::lower(*computation, *nest, unit);
    return lowered ? Support::yes() : Support::no(lowered.error().message);
  }

 private:
  static loop::VectorUnit unit_of(const Hardware& hardware) {
    return loop::VectorUnit::of(hardware.get(HardwareValue::kVectorBytes) >= 64 ? CpuIsa::kAvx512
                                                                                : CpuIsa::kAvx2);
  }
  // As many as a nest may have: what is measured may have come from a wider space.
  static constexpr std::size_t kMaxLoops = 12;
  std::vector<FeatureInfo> columns_;
};

}  // namespace

const FeatureTable& loop_nest_table() {
  static const LoopNestTable table;
  return table;
}

}  // namespace foretune::features_internal
