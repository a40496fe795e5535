// Features of sparse schedules: what storage and loops of a schedule cost on a matrix, by
// internal/schedule_walk.h, how threads share the loops, and what stays in caches.
#include "foretune/space/schemas/sparse_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/features/column_table.h"
#include "foretune/features/internal/schedule_walk.h"
#include "foretune/features/internal/sparse_matrix_columns.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/sparse/sparse_problem.h"

namespace foretune::features_internal {
namespace {

constexpr double kValueBytes = 4;
constexpr double kRegionNs = 5000;  // of starting a parallel region
constexpr double kChunkNs = 100;    // of handing out a chunk

constexpr std::array kSizeColumns{
    as_categorical(of_problem("op", "number of the operation's label")),
    of_problem("log2_rows", "log2 of the rows"),
    of_problem("log2_columns", "log2 of the columns"),
    of_problem("log2_nnz", "log2 of the non-zeros and one"),
    of_problem("log2_n", "log2 of the dense columns"),
    of_problem("log2_density", "log2 of the share of places with a non-zero"),
    of_problem("log2_row_mean", "log2 of the mean length of a row and one"),
    of_problem("log2_column_mean", "log2 of the mean length of a column and one"),
    of_problem("log2_all_over_l3", "log2 of the bytes of all operands over the L3 cache"),
    of_problem("threads", "hardware threads of the device; 1 where unknown"),
    of_problem("vector_bytes", "bytes of a vector register"),
};

constexpr std::array kConfigColumns{
    of_config("log2_inner_rows", "log2 of the inner part of the rows"),
    of_config("log2_inner_columns", "log2 of the inner part of the columns"),
    of_config("log2_inner_dense", "log2 of the inner part of the dense axis"),
    as_categorical(of_config("order", "number of the order of the loops")),
    of_config("place_r0", "place of the loop over outer parts of rows, from 0"),
    of_config("place_r1", "the same of inner parts of rows"),
    of_config("place_c0", "the same of outer parts of columns"),
    of_config("place_c1", "the same of inner parts of columns"),
    of_config("place_d0", "the same of outer parts of the dense axis; -1 without it"),
    of_config("place_d1", "the same of inner parts of the dense axis; -1 without it"),
    of_config("level_r0", "code of the level over outer parts of rows"),
    of_config("level_r1", "the same of inner parts of rows"),
    of_config("level_c0", "the same of outer parts of columns"),
    of_config("level_c1", "the same of inner parts of columns"),
    as_categorical(of_config("levels", "number of the level formats of A, in storage order")),
    as_categorical(of_config("innermost", "number of the innermost loop")),
    as_categorical(of_config("second_innermost", "number of the loop around it")),
    as_categorical(of_config("parallel", "number of the parallel loop and one; 0 without one")),
    of_config("parallel_place", "place of the parallel loop; -1 without one"),
    of_config("vector", "1 where a loop is marked as vectorised"),
    of_config("unroll", "1 where a loop is marked as unrolled"),
    of_config("log2_chunk", "log2 of the iterations of a chunk"),
};

constexpr std::array kInteractionColumns{
    of_both("log2_stored_0", "log2 of the stored positions of the outermost level over nnz"),
    of_both("log2_stored_1", "the same of the second level"),
    of_both("log2_stored_2", "the same of the third level"),
    of_both("log2_fill", "the same of the innermost level, mean over the sparse operands"),
    of_both("log2_storage", "log2 of the bytes of A over nnz"),
    of_both("log2_storage_over_l3", "log2 of the bytes of A over the L3 cache"),
    of_both("log2_turns_0", "log2 of the turns of the outermost loop over those of the product"),
    of_both("log2_turns_1", "the same of the second loop"),
    of_both("log2_turns_2", "the same of the third loop"),
    of_both("log2_turns_3", "the same of the fourth loop"),
    of_both("log2_turns_4", "the same of the fifth loop"),
    of_both("log2_turns_5", "the same of the sixth loop"),
    of_both("log2_all_turns", "the same of all loops together"),
    of_both("log2_innermost", "log2 of the mean turns of a round of the innermost loop"),
    of_both("log2_second_innermost", "the same of the loop around it"),
    of_both("log2_third_innermost", "the same of the loop around that one"),
    of_both("log2_rounds", "log2 of how often the parallel loop begins"),
    of_both("log2_iterations", "log2 of the turns of a round of the parallel loop"),
    of_both("log2_chunks_a_thread", "log2 of the chunks of a round over the threads"),
    of_both("used_threads", "share of the threads that get a chunk"),
    of_both("balance", "mean work of the threads that work over the largest, by chunks"),
    of_both("log2_chunk_turns", "log2 of the turns of all loops in a chunk"),
    of_both("log2_region_share", "log2 of the ns of starting regions over those of all turns"),
    of_both("log2_estimate", "log2 of the estimated ns over those of the least turns"),
    of_both("log2_inside_1", "log2 of the dense bytes that one turn of the first loop touches"),
    of_both("log2_inside_2", "the same of the second loop"),
    of_both("log2_inside_3", "the same of the third loop"),
    of_both("log2_inside_4", "the same of the fourth loop"),
    of_both("log2_chunk_bytes", "log2 of the dense bytes that a chunk touches"),
    of_both("log2_chunk_over_l2", "log2 of those bytes over the L2 cache"),
};

double log2_of(double value) { return std::log2(std::max(value, 1e-30)); }

std::size_t place_of(const SparseSchedule& schedule, SparseLoop loop) {
  return static_cast<std::size_t>(std::find(schedule.order.begin(), schedule.order.end(), loop) -
                                  schedule.order.begin());
}

// Returns the schedule, or CSR's of no use for words that are none.
SparseSchedule schedule_of(std::span<const std::int32_t> words) {
  static const std::uint64_t kSchema = sparse_schedule_schema().id();
  if (auto schedule = SparseSchedule::from({.schema = kSchema, .words = Config::Words(words)})) {
    return *schedule;
  }
  SparseSchedule plain;
  plain.order = sparse_orders().front();
  return plain;
}

// The device as doubles, with stand-ins for what is not known.
struct Machine {
  double threads = 1;
  double l2_bytes = 1;
  double l3_bytes = 1;

  explicit Machine(const Hardware& hardware)
      : threads(std::max(1.0, hardware.get(HardwareValue::kCores)) *
                std::max(1.0, hardware.get(HardwareValue::kThreadsPerCore))),
        l2_bytes(std::max(1.0, hardware.get(HardwareValue::kL2Bytes))),
        l3_bytes(std::max(1.0, hardware.get(HardwareValue::kL3Bytes))) {}
};

// Returns the bytes of the dense operands that one turn of the loop at `place` touches.
double dense_bytes_inside(const SparseSchedule& schedule, const MatrixShape& shape,
                          std::size_t place) {
  std::array<double, kSparseAxes> extent{shape.rows, shape.columns, shape.width};
  for (std::size_t i = 0; i <= place && i < schedule.order.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axis_of(schedule.order[i]));
    extent[axis] = is_inner(schedule.order[i]) ? 1 : schedule.inner[axis];
  }
  return kValueBytes * (extent[0] + extent[1]) * extent[2];
}

class SparseScheduleTable final : public FeatureTable {
 public:
  SparseScheduleTable()
      : columns_(
            joined({kSizeColumns, sparse_matrix_columns(), kConfigColumns, kInteractionColumns})) {}

  std::string_view name() const override { return "sparse-schedule"; }
  std::span<const FeatureInfo> columns() const override { return columns_; }
  Support supports(ProblemType type, const ConfigSchema& schema) const override {
    return type == kSparseProblem && has_parameters(schema, sparse_schedule_schema())
               ? Support::yes()
               : Support::no(
                     "the table sparse-schedule describes sparse problems with configs of the "
                     "schema sparse-schedule");
  }

  void problem_row(const Problem& problem, const Hardware& hardware,
                   std::span<double> out) const override {
    const SparseProblem typed = *SparseProblem::from(problem);
    const MatrixShape shape = MatrixShape::of(problem);
    const Machine machine(hardware);
    std::size_t i = 0;
    out[i++] = static_cast<double>(shape.sizes.operation);
    out[i++] = std::log2(shape.rows);
    out[i++] = std::log2(shape.columns);
    out[i++] = std::log2(static_cast<double>(shape.sizes.non_zeros) + 1);
    out[i++] = std::log2(shape.width);
    out[i++] = std::log2(shape.non_zeros / shape.rows / shape.columns);
    out[i++] = std::log2(shape.non_zeros / shape.rows + 1);
    out[i++] = std::log2(shape.non_zeros / shape.columns + 1);
    out[i++] = std::log2(typed.bytes() / machine.l3_bytes);
    out[i++] = machine.threads;
    out[i++] = hardware.get(HardwareValue::kVectorBytes);
    sparse_matrix_row(problem, out.subspan(i));
  }

  void config_row(std::span<const std::int32_t> words, std::span<double> out) const override {
    const SparseSchedule schedule = schedule_of(words);
    const auto stored = schedule.storage_order();
    std::size_t i = 0;
    for (const std::int32_t inner : schedule.inner) {
      out[i++] = std::log2(inner);
    }
    out[i++] = at(words, SparseScheduleField::kOrder);
    for (std::size_t loop = 0; loop < kSparseLoops; ++loop) {
      const std::size_t place = place_of(schedule, static_cast<SparseLoop>(loop));
      out[i++] = place < schedule.order.size() ? static_cast<double>(place) : -1;
    }
    for (std::size_t loop = 0; loop < kSparseLevels; ++loop) {
      const auto place = static_cast<std::size_t>(
          std::find(stored.begin(), stored.end(), static_cast<SparseLoop>(loop)) - stored.begin());
      out[i++] = static_cast<double>(schedule.levels[0][place]);
    }
    out[i++] = at(words, SparseScheduleField::kLevels);
    const std::size_t loops = schedule.order.size();
    out[i++] = static_cast<double>(schedule.order[loops - 1]);
    out[i++] = static_cast<double>(schedule.order[loops - 2]);
    out[i++] = at(words, SparseScheduleField::kParallel);
    out[i++] = schedule.parallel ? static_cast<double>(place_of(schedule, *schedule.parallel)) : -1;
    out[i++] = schedule.vector ? 1 : 0;
    out[i++] = schedule.unroll ? 1 : 0;
    out[i++] = std::log2(schedule.chunk);
  }

  void interaction_columns(const Problem& problem, const Hardware& hardware, ConfigWords configs,
                           std::span<double> out, std::size_t stride) const override {
    const MatrixShape shape = MatrixShape::of(problem);
    const Machine machine(hardware);
    ColumnWriter writer(out, stride);
    for_each_config(configs, writer, [&](std::span<const std::int32_t> words) {
      const SparseSchedule schedule = schedule_of(words);
      const ScheduleWalk walk = walk_schedule(schedule, shape);
      put_storage(schedule, walk, shape, machine, writer);
      put_turns(walk, shape, writer);
      put_threads(schedule, walk, shape, machine, writer);
    });
  }

 private:
  static void put_storage(const SparseSchedule& schedule, const ScheduleWalk& walk,
                          const MatrixShape& shape, const Machine& machine, ColumnWriter& writer) {
    for (std::size_t i = 0; i + 1 < kSparseLevels; ++i) {
      writer.put(log2_of(walk.positions[i] / shape.non_zeros));
    }
    double values = walk.value_count;
    for (std::size_t operand = 1; operand < schedule.operands; ++operand) {
      SparseSchedule other = schedule;
      other.levels[0] = schedule.levels[operand];
      values += walk_schedule(other, shape).value_count;
    }
    const double bytes = walk.index_bytes + kValueBytes * walk.value_count;
    writer.put(log2_of(values / static_cast<double>(schedule.operands) / shape.non_zeros));
    writer.put(log2_of(bytes / shape.non_zeros));
    writer.put(log2_of(bytes / machine.l3_bytes));
  }

  static void put_turns(const ScheduleWalk& walk, const MatrixShape& shape, ColumnWriter& writer) {
    const double least = shape.non_zeros * shape.width;
    for (const double turns : walk.turns) {
      writer.put(log2_of(turns / least));
    }
    writer.put(log2_of(all_turns(walk) / least));
    for (std::size_t from_inside = 1; from_inside <= 3; ++from_inside) {
      writer.put(log2_of(walk.length[walk.loops - from_inside]));
    }
  }

  static double all_turns(const ScheduleWalk& walk) {
    double sum = 0;
    for (std::size_t i = 0; i < walk.loops; ++i) {
      sum += walk.turns[i];
    }
    return sum;
  }

  static void put_threads(const SparseSchedule& schedule, const ScheduleWalk& walk,
                          const MatrixShape& shape, const Machine& machine, ColumnWriter& writer) {
    const double turns = all_turns(walk);
    const std::size_t place =
        schedule.parallel ? place_of(schedule, *schedule.parallel) : walk.loops;
    const bool is_parallel = place < walk.loops;
    const double iterations = is_parallel ? std::max(1.0, walk.length[place]) : 1;
    const double rounds = is_parallel ? std::max(1.0, walk.turns[place] / iterations) : 0;
    const double chunks = is_parallel ? std::ceil(iterations / schedule.chunk) : 1;
    const double used = std::min(chunks, machine.threads);
    // Threads take chunks in rounds; in the last one some wait.
    const double balance = chunks / (std::ceil(chunks / used) * used);
    const double regions_ns = rounds * (kRegionNs + kChunkNs * std::ceil(chunks / machine.threads));
    const double turns_ns = turns / (used * balance);
    writer.put(is_parallel ? log2_of(rounds) : -1);
    writer.put(log2_of(iterations));
    writer.put(log2_of(chunks / machine.threads));
    writer.put(used / machine.threads);
    writer.put(balance);
    writer.put(log2_of(turns / std::max(1.0, rounds) / chunks));
    writer.put(log2_of((regions_ns + 1) / turns_ns));
    writer.put(
        log2_of((regions_ns + turns_ns) * machine.threads / (shape.non_zeros * shape.width)));
    for (std::size_t i = 0; i < 4; ++i) {
      writer.put(log2_of(dense_bytes_inside(schedule, shape, i)));
    }
    double chunk_bytes = dense_bytes_inside(schedule, shape, 0);
    if (is_parallel) {
      chunk_bytes = dense_bytes_inside(schedule, shape, place) *
                    std::min(static_cast<double>(schedule.chunk), iterations);
    }
    writer.put(log2_of(chunk_bytes));
    writer.put(log2_of(chunk_bytes / machine.l2_bytes));
  }

  std::vector<FeatureInfo> columns_;
};

}  // namespace

const FeatureTable& sparse_schedule_table() {
  static const SparseScheduleTable table;
  return table;
}

}  // namespace foretune::features_internal
