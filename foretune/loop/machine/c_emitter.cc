#include "foretune/loop/machine/c_emitter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/machine/c_expression.h"

namespace foretune::loop {
namespace {

using c_text::binary;
using c_text::element;
using c_text::literal;
using c_text::Sum;
using c_text::update;
using c_text::Values;

// A size for which a thread's stack surely has room.
constexpr std::int64_t kMaxBlockFloats = std::int64_t{16} << 10U;
// With more copies of a loop's body, compilers take minutes and the code exceeds the caches.
constexpr std::int64_t kMaxBodies = 64;

class CEmitter {
 public:
  CEmitter(const Computation& computation, const Nest& nest, std::string_view function_name)
      : c_(computation), nest_(nest), function_name_(function_name), values_(c_.vars.size()) {
    for (std::size_t level = 0; level < nest_.loops.size(); ++level) {
      names_.push_back(loop_name(c_, nest_, level));
      std::string& value = values_[nest_.loops[level].var];
      value += concat(value.empty() ? "" : " + ", names_.back());
      plan_end(level);
    }
    for (const Tensor& tensor : c_.inputs) {
      tensors_.push_back(free_name(tensor.name));
    }
    output_ = free_name(c_.output.name);
    sums_in_block_ = c_.has_reduction() && nest_.block != Nest::kNoBlock;
    finished_in_block_ = sums_in_block_;
    for (std::size_t level = 0; sums_in_block_ && level < block(); ++level) {
      finished_in_block_ = finished_in_block_ && !is_reduction(level);
    }
  }

  Result<std::string> write() {
    FORETUNE_TRY_STATUS(check_buffers());
    out_ = concat(c_text::kHelpers, "\n", c_text::describe(c_));
    // Without OpenMP the compiler would warn of unknown pragmas.
    out_ +=
        "#if defined(__GNUC__)\n#pragma GCC diagnostic push\n"
        "#pragma GCC diagnostic ignored \"-Wunknown-pragmas\"\n#endif\n";
    open(concat("void ", function_name_, "(const float *const *inputs, float *output)"));
    declare_tensors();
    const bool makes_passes = c_.has_reduction() && !finished_in_block_;
    if (makes_passes) {
      pass([&](const Values& values) {
        line(concat(element(c_.output, output_, values), " = ", literal(c_.neutral()), ";"));
      });
    }
    const bool in_threads = nest_.loops[0].mark == Mark::kParallel;
    allocate([&](const Pack& pack) { return !in_threads || pack.level == 0; }, [&] { walk(0); });
    if (makes_passes && !c_.steps.empty()) {
      pass([&](const Values& values) { take_steps(values, element(c_.output, output_, values)); });
    }
    close();
    out_ += "#if defined(__GNUC__)\n#pragma GCC diagnostic pop\n#endif\n";
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool is_reduction(std::size_t level) const {
    return c_.vars[nest_.loops[level].var].is_reduction;
  }
  [[nodiscard]] std::size_t block() const { return static_cast<std::size_t>(nest_.block); }

  // Names of loops end in digits, and the names below contain an underscore; tensors may have all
  // others.
  [[nodiscard]] std::string free_name(const std::string& name) const {
    const bool is_loop = std::find(names_.begin(), names_.end(), name) != names_.end();
    return is_loop || c_text::is_taken(name) ? name + "_tensor" : name;
  }

  // Plans the end of a loop, which covers its whole range, or less in the last rounds of the loops
  // around it.
  void plan_end(std::size_t level) {
    const std::uint8_t var = nest_.loops[level].var;
    std::optional<std::size_t> around;
    for (std::size_t i = 0; i < level; ++i) {
      if (nest_.loops[i].var == var) {
        around = i;
      }
    }
    if (!around) {
      covers_.push_back({c_.vars[var].extent});
      ends_.emplace_back();
      return;
    }
    const std::int64_t step = nest_.loops[*around].step;
    std::vector<std::int64_t> covers;
    for (const std::int64_t whole : covers_[*around]) {
      for (const std::int64_t part : {whole >= step ? step : 0, whole % step}) {
        if (part != 0 && std::find(covers.begin(), covers.end(), part) == covers.end()) {
          covers.push_back(part);
        }
      }
    }
    ends_.push_back(covers.size() == 1 ? ""
                                       : concat("foretune_shorter(", step, ", ", end(*around),
                                                " - ", names_[*around], ")"));
    covers_.push_back(std::move(covers));
  }

  [[nodiscard]] std::string end(std::size_t level) const {
    return covers_[level].size() == 1 ? concat(covers_[level][0]) : names_[level] + "_end";
  }

  // Returns the loops from a level on that move over an input.
  [[nodiscard]] std::vector<std::size_t> loops_of(const Pack& pack) const {
    std::vector<std::size_t> levels;
    for (std::size_t level = pack.level; level < nest_.loops.size(); ++level) {
      const auto& dimensions = c_.inputs[pack.input].dimensions;
      if (std::any_of(dimensions.begin(), dimensions.end(), [&](const Dimension& dimension) {
            return dimension.coefficients[nest_.loops[level].var] != 0;
          })) {
        levels.push_back(level);
      }
    }
    return levels;
  }

  [[nodiscard]] std::vector<std::size_t> loops_of_block() const {
    std::vector<std::size_t> levels;
    for (std::size_t level = block(); level < nest_.loops.size(); ++level) {
      if (!is_reduction(level)) {
        levels.push_back(level);
      }
    }
    return levels;
  }

  // Returns the number of places with one for every round of some loops; most + 1 where there are
  // more than `most`.
  [[nodiscard]] std::int64_t places_of(const std::vector<std::size_t>& levels,
                                       std::int64_t most) const {
    std::int64_t places = 1;
    for (const std::size_t level : levels) {
      const std::int64_t rounds = nest_.rounds(c_, level);
      if (rounds > most / places) {
        return most + 1;
      }
      places *= rounds;
    }
    return places;
  }

  // Returns the place in a buffer with one place for every round. Rounds of the innermost loop are
  // neighbours.
  [[nodiscard]] std::string place_in(const std::vector<std::size_t>& levels) const {
    std::vector<std::int64_t> strides(levels.size(), 1);
    for (std::size_t i = levels.size(); i-- > 1;) {
      strides[i - 1] = strides[i] * nest_.rounds(c_, levels[i]);
    }
    Sum place;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const std::int64_t step = nest_.loops[levels[i]].step;
      const std::string& name = names_[levels[i]];
      if (strides[i] % step == 0) {
        place.add(strides[i] / step, name);
      } else {
        place.add(strides[i], concat("(", name, " / ", step, ")"));
      }
    }
    return place.text();
  }

  Status check_buffers() const {
    for (const Pack& pack : nest_.packs) {
      if (places_of(loops_of(pack), kMaxPackFloats) > kMaxPackFloats) {
        return fail(ErrorCode::kUnsupported, "packing ", c_.inputs[pack.input].name, " at ",
                    names_[pack.level], " takes a buffer of more than 64 MiB");
      }
    }
    if (sums_in_block_ && places_of(loops_of_block(), kMaxBlockFloats) > kMaxBlockFloats) {
      return fail(ErrorCode::kUnsupported, "the register block at ", names_[block()],
                  " keeps more than ", kMaxBlockFloats, " values");
    }
    return {};
  }

  void line(std::string_view text) { out_ += concat(std::string(2 * depth_, ' '), text, "\n"); }
  void open(std::string_view head) {
    line(concat(head, head.empty() ? "{" : " {"));
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }

  void close_to(std::size_t depth) {
    while (depth_ > depth) {
      close();
    }
  }
  // Opens a scope for a loop whose name may occur twice here, since it would declare its end twice.
  void open_scope(std::size_t level) {
    if (!ends_[level].empty()) {
      open("");
    }
  }

  void declare_tensors() {
    for (std::size_t i = 0; i < c_.inputs.size(); ++i) {
      const bool is_used = i < static_cast<std::size_t>(c_.combined) ||
                           std::any_of(
                               c_.steps.begin(), c_.steps.end(),
                               [&](const Step& step) { return step.input == static_cast<int>(i); });
      if (is_used) {
        line(concat("const float *const ", tensors_[i], " = inputs[", i, "];"));
      }
    }
    line(concat("float *restrict const ", output_, " = output;"));
  }

  // Allocates the buffers of packs around `body`, so that every thread has its own.
  template <class Chosen, class Body>
  void allocate(const Chosen& chosen, const Body& body) {
    for (const Pack& pack : nest_.packs) {
      if (chosen(pack)) {
        line(concat("float *const ", buffer(pack), " = malloc(",
                    places_of(loops_of(pack), kMaxPackFloats), " * sizeof(float));"));
        open(concat("if (", buffer(pack), " == NULL)"));
        line("abort();");
        close();
      }
    }
    body();
    for (const Pack& pack : nest_.packs) {
      if (chosen(pack)) {
        line(concat("free(", buffer(pack), ");"));
      }
    }
  }

  [[nodiscard]] std::string buffer(const Pack& pack) const {
    return tensors_[pack.input] + "_pack";
  }

  // Writes loops over all points of the output, in the order of the variables.
  template <class Body>
  void pass(const Body& body) {
    Values values;
    const std::size_t depth = depth_;
    for (const Var& var : c_.vars) {
      const std::string& name = values.emplace_back(var.name + "0");
      if (!var.is_reduction) {
        open(concat("for (long ", name, " = 0; ", name, " < ", var.extent, "; ++", name, ")"));
      }
    }
    body(values);
    close_to(depth);
  }

  void open_loop(std::size_t level, bool with_mark) {
    const Loop& loop = nest_.loops[level];
    const std::string& name = names_[level];
    if (!ends_[level].empty()) {
      line(concat("const long ", name, "_end = ", ends_[level], ";"));
    }
    if (with_mark) {
      mark(level);
    }
    open(concat("for (long ", name, " = 0; ", name, " < ", end(level), "; ",
                loop.step == 1 ? concat("++", name) : concat(name, " += ", loop.step), ")"));
  }

  void mark(std::size_t level) {
    switch (nest_.loops[level].mark) {
      case Mark::kNone:
      case Mark::kUnroll:
        if (is_unrolled(level) && bodies_of(level) <= kMaxBodies) {
          line(concat("#pragma GCC unroll ", nest_.rounds(c_, level)));
        }
        return;
      case Mark::kVector: {
        // Rounds of a reduction share one sum, and rounds that fill a buffer share the buffer.
        const bool fills = std::any_of(nest_.packs.begin(), nest_.packs.end(),
                                       [&](const Pack& pack) { return pack.level > level; });
        if (!is_reduction(level) && !fills) {
          line("#pragma omp simd");
        }
        return;
      }
      case Mark::kParallel:
        line("#pragma omp parallel for");
        return;
    }
  }

  // The values of a block stay in registers only where their indices are constants.
  [[nodiscard]] bool is_unrolled(std::size_t level) const {
    const Mark mark = nest_.loops[level].mark;
    return mark == Mark::kUnroll || (mark == Mark::kNone && sums_in_block_ && level >= block() &&
                                     !is_reduction(level) && nest_.rounds(c_, level) > 1);
  }

  // Returns the number of copies that unrolling makes of the innermost body, from a loop inwards.
  [[nodiscard]] std::int64_t bodies_of(std::size_t level) const {
    std::vector<std::size_t> unrolled;
    for (; level < nest_.loops.size(); ++level) {
      if (is_unrolled(level)) {
        unrolled.push_back(level);
      }
    }
    return places_of(unrolled, kMaxBodies);
  }

  template <class Body>
  void loops(const std::vector<std::size_t>& levels, bool with_marks, const Body& body) {
    const std::size_t depth = depth_;
    if (!levels.empty()) {
      open_scope(levels[0]);
    }
    for (const std::size_t level : levels) {
      open_loop(level, with_marks);
    }
    body();
    close_to(depth);
  }

  void walk(std::size_t level) {
    if (level == nest_.loops.size()) {
      visit();
      return;
    }
    for (const Pack& pack : nest_.packs) {
      if (pack.level == level) {
        const std::vector<std::size_t> levels = loops_of(pack);
        loops(levels, false, [&] {
          line(concat(buffer(pack), "[", place_in(levels), "] = ", read(pack.input), ";"));
        });
      }
    }
    if (sums_in_block_ && level == block()) {
      run_block();
    } else {
      run_loop(level);
    }
  }

  void run_loop(std::size_t level) {
    open_loop(level, true);
    const bool in_threads = nest_.loops[level].mark == Mark::kParallel;
    allocate([&](const Pack& pack) { return in_threads && pack.level > level; },
             [&] { walk(level + 1); });
    close();
  }

  void run_block() {
    const std::vector<std::size_t> levels = loops_of_block();
    const std::string out = element(c_.output, output_, values_);
    open("");
    // With a shorter last round compilers do not see that all used sums are set.
    const bool is_cut = std::any_of(levels.begin(), levels.end(),
                                    [&](std::size_t level) { return !ends_[level].empty(); });
    line(concat("float acc[", places_of(levels, kMaxBlockFloats), is_cut ? "] = {0};" : "];"));
    loops(levels, true, [&] {
      line(concat(acc(), " = ", finished_in_block_ ? literal(c_.neutral()) : out, ";"));
    });
    const std::size_t depth = depth_;
    open_scope(block());
    run_loop(block());
    close_to(depth);
    loops(levels, true, [&] {
      if (finished_in_block_ && !c_.steps.empty()) {
        line(concat("float value = ", acc(), ";"));
        take_steps(values_, "value");
        line(concat(out, " = value;"));
      } else {
        line(concat(out, " = ", acc(), ";"));
      }
    });
    close();
  }

  [[nodiscard]] std::string acc() const { return concat("acc[", place_in(loops_of_block()), "]"); }

  // Returns the expression that reads an input as stored, with zeros around it.
  [[nodiscard]] std::string read(std::size_t input) const {
    const Tensor& tensor = c_.inputs[input];
    const std::string inner = element(tensor, tensors_[input], values_);
    const std::string condition = c_text::guard(c_.vars, tensor, values_);
    return condition.empty() ? inner : concat("(", condition, " ? ", inner, " : 0.0f)");
  }

  [[nodiscard]] std::string operand(std::size_t input) const {
    for (const Pack& pack : nest_.packs) {
      if (pack.input == input) {
        return concat(buffer(pack), "[", place_in(loops_of(pack)), "]");
      }
    }
    return read(input);
  }

  void visit() {
    const std::string combined =
        c_.combined == 1 ? operand(0) : binary(c_.combine, operand(0), operand(1));
    const std::string out = element(c_.output, output_, values_);
    if (c_.has_reduction()) {
      line(update(c_.reduce, sums_in_block_ ? acc() : out, combined));
    } else if (c_.steps.empty()) {
      line(concat(out, " = ", combined, ";"));
    } else {
      line(concat("float value = ", combined, ";"));
      take_steps(values_, "value");
      line(concat(out, " = value;"));
    }
  }

  void take_steps(const Values& values, const std::string& target) {
    for (const Step& step : c_.steps) {
      const auto input = static_cast<std::size_t>(step.input);
      line(update(step.op, target,
                  step.input < 0 ? literal(step.constant)
                                 : element(c_.inputs[input], tensors_[input], values)));
    }
  }

  const Computation& c_;
  const Nest& nest_;
  std::string function_name_;
  Values values_;
  std::vector<std::string> names_;  // of the loops
  std::vector<std::vector<std::int64_t>> covers_;
  std::vector<std::string> ends_;     // of the loops whose last rounds are shorter
  std::vector<std::string> tensors_;  // names of the inputs
  std::string output_;
  bool sums_in_block_ = false;
  bool finished_in_block_ = false;
  std::string out_;
  std::size_t depth_ = 0;
};

}  // namespace

Result<std::string> emit_c(const Computation& computation, const Nest& nest,
                           std::string_view function_name) {
  if (!c_text::is_identifier(function_name)) {
    return fail(ErrorCode::kInvalidArgument, quoted(function_name), " cannot name a C function");
  }
  FORETUNE_TRY_STATUS(check(computation, nest));
  return CEmitter(computation, nest, function_name).write();
}

}  // namespace foretune::loop
