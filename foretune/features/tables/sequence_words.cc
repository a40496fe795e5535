// Configs that are sequences of small numbers, such as a knob for each layer, where no table knows
// more of them. An element is described by its number alone.
#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/base/text.h"
#include "foretune/features/column_table.h"
#include "foretune/features/ragged_table.h"
#include "foretune/features/tables/table_rows.h"
#include "foretune/problem/problem_type.h"

namespace foretune::features_internal {
namespace {

constexpr std::array kProblemColumns{
    FeatureInfo{"log2_flops", FeatureKind::kProblem, "log2 of one more than the operations"},
    FeatureInfo{"log2_bytes", FeatureKind::kProblem, "log2 of one more than the operands' bytes"}};

// Larger numbers have no column of their own.
constexpr std::int32_t kTold = 8;

std::vector<TokenInfo> token_infos() {
  std::vector<TokenInfo> out{{"word", "the number"},
                             {"differs", "1 where it is another than the one before"}};
  for (std::int32_t word = 0; word < kTold; ++word) {
    out.push_back({concat("is_", word), concat("1 where the number is ", word)});
  }
  return out;
}

class SequenceWordsTable final : public RaggedTable {
 public:
  SequenceWordsTable() : RaggedTable(kProblemColumns, token_infos()) {}

  std::string_view name() const override { return "sequence-words"; }
  Support supports(ProblemType /*type*/, const ConfigSchema& schema) const override {
    return schema.kind == SchemaKind::kSequence
               ? Support::yes()
               : Support::no("sequence-words describes configs that are sequences");
  }
  void problem_row(const Problem& problem, const Hardware& /*hardware*/,
                   std::span<double> out) const override {
    const ProblemWork work = problem_work(problem).value_or(ProblemWork{});
    out[0] = std::log2(1 + work.flops);
    out[1] = std::log2(1 + work.bytes);
  }
  void token_rows(const Problem& /*problem*/, const Hardware& /*hardware*/,
                  std::span<const std::int32_t> words, std::vector<double>& rows) const override {
    const std::size_t columns = token_columns().size();
    rows.assign(words.size() * columns, 0);
    for (std::size_t i = 0; i < words.size(); ++i) {
      double* const row = &rows[i * columns];
      row[0] = words[i];
      row[1] = i > 0 && words[i] != words[i - 1] ? 1 : 0;
      if (words[i] >= 0 && words[i] < kTold) {
        row[2 + words[i]] = 1;
      }
    }
  }
};

}  // namespace

const FeatureTable& sequence_words_table() {
  static const SequenceWordsTable table;
  return table;
}

}  // namespace foretune::features_internal
