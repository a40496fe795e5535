#include "foretune/space/schemas/sparse_schedule.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::array<std::string_view, kSparseLoops> kLoopNames{"r0", "r1", "c0", "c1", "d0", "d1"};
constexpr std::string_view kLevelLetters = "dsuqc";
constexpr std::size_t kLevelCombinations = 625;  // five formats on each of four levels
constexpr std::int32_t kMaxInner = 1 << 28;
constexpr std::int32_t kMaxChunk = 1 << 28;

// Appends every order of `left` that has outer parts before their inner ones.
void add_orders(SparseOrder& begun, const std::vector<SparseLoop>& left,
                std::vector<SparseOrder>& orders) {
  if (left.empty()) {
    orders.push_back(begun);
    return;
  }
  for (const SparseLoop loop : left) {
    const SparseLoop outer = loop_of(axis_of(loop), false);
    if (is_inner(loop) && std::find(left.begin(), left.end(), outer) != left.end()) {
      continue;
    }
    std::vector<SparseLoop> others = left;
    std::erase(others, loop);
    SparseOrder longer = begun;
    longer.push_back(loop);
    add_orders(longer, others, orders);
  }
}

std::vector<SparseOrder> make_orders() {
  std::vector<SparseOrder> orders;
  SparseOrder begun;
  std::vector<SparseLoop> loops{SparseLoop::kRow0, SparseLoop::kRow1, SparseLoop::kColumn0,
                                SparseLoop::kColumn1};
  add_orders(begun, loops, orders);
  loops.insert(loops.end(), {SparseLoop::kDense0, SparseLoop::kDense1});
  add_orders(begun, loops, orders);
  return orders;
}

std::string text_of(const SparseOrder& order) {
  std::string out;
  for (const SparseLoop loop : order) {
    out += concat(out.empty() ? "" : ".", to_string(loop));
  }
  return out;
}

std::int32_t number_of(const SparseLevels& levels) {
  std::int32_t number = 0;
  for (const SparseLevel level : levels) {
    number =
        number * static_cast<std::int32_t>(kSparseLevelKinds) + static_cast<std::int32_t>(level);
  }
  return number;
}

SparseLevels levels_of(std::int32_t number) {
  SparseLevels levels{};
  for (std::size_t i = kSparseLevels; i > 0; --i) {
    levels[i - 1] = static_cast<SparseLevel>(number % static_cast<std::int32_t>(kSparseLevelKinds));
    number /= static_cast<std::int32_t>(kSparseLevelKinds);
  }
  return levels;
}

std::vector<std::string> level_labels() {
  std::vector<std::string> labels;
  for (std::size_t number = 0; number < kLevelCombinations; ++number) {
    labels.push_back(to_string(levels_of(static_cast<std::int32_t>(number))));
  }
  return labels;
}

std::vector<std::string> with_first(const std::string& first, std::vector<std::string> labels) {
  labels.insert(labels.begin(), first);
  return labels;
}

ConfigSchema make_schema() {
  std::vector<std::string> orders;
  for (const SparseOrder& order : sparse_orders()) {
    orders.push_back(text_of(order));
  }
  const std::vector<std::string> levels = level_labels();
  const std::vector<std::string> loops =
      with_first("none", std::vector<std::string>(kLoopNames.begin(), kLoopNames.end()));
  return {.name = "sparse-schedule",
          .version = 1,
          .kind = SchemaKind::kParametric,
          .parameters = {{"inner_rows", {}},
                         {"inner_columns", {}},
                         {"inner_dense", {}},
                         {"order", orders},
                         {"levels", levels},
                         {"levels_b", with_first("-", levels)},
                         {"levels_c", with_first("-", levels)},
                         {"parallel", loops},
                         {"vector", loops},
                         {"unroll", loops},
                         {"chunk", {}}}};
}

std::uint64_t schema_id() {
  static const std::uint64_t kId = sparse_schedule_schema().id();
  return kId;
}

std::int32_t word_of(const std::optional<SparseLoop>& loop) {
  return loop ? static_cast<std::int32_t>(*loop) + 1 : 0;
}

std::optional<SparseLoop> loop_of_word(std::int32_t word) {
  return word > 0 ? std::optional(static_cast<SparseLoop>(word - 1)) : std::nullopt;
}

// Returns true when a level of format `next` may lie below one of format `above`.
bool may_follow(SparseLevel above, SparseLevel next, bool is_last, bool dense_above) {
  if (next == SparseLevel::kSingletonRepeated && dense_above) {
    return false;
  }
  switch (above) {
    case SparseLevel::kDense:
    case SparseLevel::kCompressed:
      return next <= SparseLevel::kCompressedRepeated;
    case SparseLevel::kCompressedRepeated:
    case SparseLevel::kSingletonRepeated:
      return next == SparseLevel::kCompressed || next == SparseLevel::kCompressedRepeated ||
             next == (is_last ? SparseLevel::kSingleton : SparseLevel::kSingletonRepeated);
    case SparseLevel::kSingleton:
      return false;
  }
  return false;
}

// Returns true when levels from `place` on may follow one of format `above`.
bool may_go_on(const SparseLevels& levels, const std::array<std::int64_t, kSparseLevels>& extents,
               std::size_t place, std::optional<SparseLevel> above, bool dense_above) {
  if (place == kSparseLevels) {
    return true;
  }
  for (std::size_t kind = 0; kind < kSparseLevelKinds; ++kind) {
    const auto level = static_cast<SparseLevel>(kind);
    const bool fits = above ? may_follow(*above, level, place + 1 == kSparseLevels, dense_above)
                            : level <= SparseLevel::kCompressedRepeated;
    if ((extents[place] == 1 || level == levels[place]) && fits &&
        may_go_on(levels, extents, place + 1, level, dense_above || level == SparseLevel::kDense)) {
      return true;
    }
  }
  return false;
}

bool is_power_of_two(std::int32_t value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint32_t>(value));
}

// The checks that do not depend on sizes. Returns the reason, or nothing.
std::string form_error(const SparseSchedule& schedule) {
  for (const std::int32_t inner : schedule.inner) {
    if (!is_power_of_two(inner) || inner > kMaxInner) {
      return concat("an inner part of ", inner, " is no power of two up to 2^28");
    }
  }
  const auto orders = sparse_orders();
  if (std::find(orders.begin(), orders.end(), schedule.order) == orders.end()) {
    return concat("the order ", text_of(schedule.order),
                  " does not have every loop once with outer parts first");
  }
  if (schedule.operands < 1 || schedule.operands > schedule.levels.size()) {
    return concat("there are level formats of ", schedule.operands, " operands, not of 1 to 3");
  }
  for (const auto& marked : {schedule.parallel, schedule.vector, schedule.unroll}) {
    if (marked &&
        std::find(schedule.order.begin(), schedule.order.end(), *marked) == schedule.order.end()) {
      return concat("there is no loop ", to_string(*marked), " to mark");
    }
  }
  if (schedule.order.size() == kSparseLevels && schedule.inner[2] != 1) {
    return concat("a dense axis is split by ", schedule.inner[2], ", but no loop runs over it");
  }
  if (schedule.chunk < 1 || schedule.chunk > kMaxChunk) {
    return concat("a chunk of ", schedule.chunk, " iterations is not from 1 to 2^28");
  }
  return {};
}

}  // namespace

std::string_view to_string(SparseLoop loop) { return kLoopNames[static_cast<std::size_t>(loop)]; }

std::string to_string(const SparseLevels& levels) {
  std::string out;
  for (const SparseLevel level : levels) {
    out += kLevelLetters[static_cast<std::size_t>(level)];
  }
  return out;
}

std::span<const SparseOrder> sparse_orders() {
  static const std::vector<SparseOrder> orders = make_orders();
  return orders;
}

bool has_dense_loops(SparseOperation operation) {
  return operation == SparseOperation::kSpmm || operation == SparseOperation::kGespmm ||
         operation == SparseOperation::kSddmm;
}

std::size_t scheduled_operands(SparseOperation operation) {
  switch (operation) {
    case SparseOperation::kMttkrp:
      return 0;
    case SparseOperation::kPlus2:
      return 2;
    case SparseOperation::kPlus3:
      return 3;
    default:
      return 1;
  }
}

const ConfigSchema& sparse_schedule_schema() {
  static const ConfigSchema schema = make_schema();
  return schema;
}

Result<SparseSchedule> SparseSchedule::from(const Config& config) {
  if (config.schema != schema_id() || config.words.size() != kSparseScheduleWords) {
    return fail(ErrorCode::kMismatch, "the config is not of the schema sparse-schedule");
  }
  const auto word = [&](SparseScheduleField field) {
    return config.words[static_cast<std::size_t>(field)];
  };
  for (std::size_t i = 0; i < kSparseScheduleWords; ++i) {
    const Parameter& parameter = sparse_schedule_schema().parameters[i];
    const auto labels = static_cast<std::int32_t>(parameter.labels.size());
    if (labels > 0 && (config.words[i] < 0 || config.words[i] >= labels)) {
      return fail(ErrorCode::kInvalidArgument, parameter.name, " has no value ", config.words[i]);
    }
  }
  SparseSchedule out;
  out.inner = {word(SparseScheduleField::kInnerRows), word(SparseScheduleField::kInnerColumns),
               word(SparseScheduleField::kInnerDense)};
  out.order = sparse_orders()[static_cast<std::size_t>(word(SparseScheduleField::kOrder))];
  out.levels[0] = levels_of(word(SparseScheduleField::kLevels));
  for (const SparseScheduleField field :
       {SparseScheduleField::kLevelsB, SparseScheduleField::kLevelsC}) {
    if (word(field) > 0) {
      out.levels[out.operands++] = levels_of(word(field) - 1);
    }
  }
  if (word(SparseScheduleField::kLevelsC) > 0 && word(SparseScheduleField::kLevelsB) == 0) {
    return fail(ErrorCode::kInvalidArgument, "levels_c is given without levels_b");
  }
  out.parallel = loop_of_word(word(SparseScheduleField::kParallel));
  out.vector = loop_of_word(word(SparseScheduleField::kVector));
  out.unroll = loop_of_word(word(SparseScheduleField::kUnroll));
  out.chunk = word(SparseScheduleField::kChunk);
  if (const std::string reason = form_error(out); !reason.empty()) {
    return fail(ErrorCode::kInvalidArgument, reason);
  }
  return out;
}

Config SparseSchedule::to_config() const {
  FORETUNE_CHECK(form_error(*this).empty());
  const auto orders = sparse_orders();
  const auto place = std::find(orders.begin(), orders.end(), order) - orders.begin();
  return {.schema = schema_id(),
          .words = {inner[0], inner[1], inner[2], static_cast<std::int32_t>(place),
                    number_of(levels[0]), operands > 1 ? number_of(levels[1]) + 1 : 0,
                    operands > 2 ? number_of(levels[2]) + 1 : 0, word_of(parallel), word_of(vector),
                    word_of(unroll), chunk}};
}

std::array<SparseLoop, kSparseLevels> SparseSchedule::storage_order() const {
  std::array<SparseLoop, kSparseLevels> out{};
  std::size_t count = 0;
  for (const SparseLoop loop : order) {
    if (axis_of(loop) != SparseAxis::kDense && count < kSparseLevels) {
      out[count++] = loop;
    }
  }
  return out;
}

std::int64_t axis_extent(const SparseSizes& sizes, SparseAxis axis) {
  switch (axis) {
    case SparseAxis::kRows:
      return sizes.rows;
    case SparseAxis::kColumns:
      return sizes.columns;
    case SparseAxis::kDense:
      return sizes.width;
  }
  return 1;
}

std::int64_t loop_extent(const SparseSchedule& schedule, const SparseSizes& sizes,
                         SparseLoop loop) {
  const SparseAxis axis = axis_of(loop);
  const std::int64_t inner = schedule.inner[static_cast<std::size_t>(axis)];
  return is_inner(loop) ? inner : (axis_extent(sizes, axis) + inner - 1) / inner;
}

bool are_levels_legal(const SparseLevels& levels,
                      const std::array<std::int64_t, kSparseLevels>& extents) {
  return may_go_on(levels, extents, 0, std::nullopt, false);
}

Status check_sparse_schedule(const SparseSchedule& schedule, const SparseSizes& sizes) {
  const std::size_t operands = scheduled_operands(sizes.operation);
  if (operands == 0) {
    return fail(ErrorCode::kUnsupported, "no schedule describes ", to_string(sizes.operation));
  }
  if (const std::string reason = form_error(schedule); !reason.empty()) {
    return fail(ErrorCode::kInvalidArgument, reason);
  }
  if ((schedule.order.size() == kSparseLoops) != has_dense_loops(sizes.operation)) {
    return fail(ErrorCode::kInvalidArgument, to_string(sizes.operation), " has ",
                has_dense_loops(sizes.operation) ? kSparseLoops : kSparseLevels,
                " loops, the schedule ", schedule.order.size());
  }
  if (schedule.operands != operands) {
    return fail(ErrorCode::kInvalidArgument, to_string(sizes.operation), " has ", operands,
                " sparse inputs, the schedule level formats of ", schedule.operands);
  }
  for (std::size_t axis = 0; axis < kSparseAxes; ++axis) {
    const std::int64_t extent = axis_extent(sizes, static_cast<SparseAxis>(axis));
    if (schedule.inner[axis] > extent) {
      return fail(ErrorCode::kInvalidArgument, "an inner part of ", schedule.inner[axis],
                  " is longer than its axis, ", extent);
    }
  }
  std::array<std::int64_t, kSparseLevels> extents{};
  const auto stored = schedule.storage_order();
  for (std::size_t i = 0; i < kSparseLevels; ++i) {
    extents[i] = loop_extent(schedule, sizes, stored[i]);
  }
  for (std::size_t i = 0; i < operands; ++i) {
    if (!are_levels_legal(schedule.levels[i], extents)) {
      return fail(ErrorCode::kInvalidArgument, "no storage has the levels ",
                  to_string(schedule.levels[i]), " in this order");
    }
  }
  return {};
}

}  // namespace foretune
