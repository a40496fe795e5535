// Any text: the parser refuses it with a position, or the code it makes runs, on ordinary and on
// extreme inputs, and explains itself.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/problem.h"
#include "foretune/space/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using foretune::Expression;
  static const foretune::ConfigSchema kSchema{
      .name = "fuzz",
      .version = 1,
      .kind = foretune::SchemaKind::kParametric,
      .parameters = {{"mr", {}}, {"pack", {"no", "yes"}}, {"k", {}}, {"min", {}}}};
  const foretune::ProblemSchema& problem = *foretune::find_problem_schema(foretune::kGemmProblem);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const foretune::Result<Expression> expression = Expression::parse(text, kSchema, problem);
  if (!expression) {
    if (expression.error().message.empty()) {
      std::abort();
    }
    return 0;
  }
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  const std::array<std::array<std::int32_t, 4>, 3> words{
      {{8, 1, 64, 3}, {0, 0, 0, 0}, {INT32_MIN, INT32_MAX, -1, 1}}};
  // As many values as the schema has fields: one of a problem type that grows must not fall short.
  std::array<std::vector<std::int64_t>, 3> fields{
      {{0, 128, 256, 512, 1, 0, 1}, {}, {kLow, kHigh, -1, 1, kLow, kHigh, 2}}};
  for (std::vector<std::int64_t>& values : fields) {
    values.resize(problem.fields.size());
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::int64_t value = expression->evaluate(words[i], fields[i], {});
    if (value != expression->evaluate(words[i], fields[i], {})) {
      std::abort();
    }
    static_cast<void>(expression->explain(words[i], fields[i], {}));
  }
  return 0;
}
