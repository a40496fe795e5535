// A feature table as data: every column is an expression over the fields of a problem, the
// parameters of a config and facts of the device, in real numbers (space/expression.h). A model
// file carries the text of its table, so a model that was trained with one runs everywhere.
//
//   space tiles 1 gemm
//   parameter block_m []
//   parameter order [nkm mkn]
//   column log2_m log2(m) # log2 of the rows
//   column tiles_m ceil_div(m, block_m) # tiles along m
//   code order order # order of the loops
//
// The first line names the table and the type of problem, the lines of parameters are those of a
// space. A `code` is a column whose order means nothing. The kind of a column follows from the
// names that its expression uses. Thread safety: free functions; tables are constant. Cost: 1 to 2
// ns an operation of an expression, a logarithm 5 to 10.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

struct ExpressionColumn {
  std::string name;
  std::string expression;
  std::string description;  // with the unit; empty: the expression
  bool is_categorical = false;
  bool operator==(const ExpressionColumn&) const = default;
};

struct ExpressionFeatures {
  std::string name;
  ProblemType problem_type{};
  std::vector<Parameter> parameters;  // all those of the configs, in order
  std::vector<ExpressionColumn> columns;

  // Returns the text above, which parse() reads back.
  [[nodiscard]] std::string text() const;
  // Checks the form only; make_expression_table() checks the meaning.
  static Result<ExpressionFeatures> parse(std::string_view text);
  bool operator==(const ExpressionFeatures&) const = default;
};

// Values that are no finite number count as 0. Errors: kInvalidArgument for a name or a text that
// its text form cannot hold, a name that occurs twice, and an expression that makes no sense.
Result<std::unique_ptr<const FeatureTable>> make_expression_table(
    const ExpressionFeatures& features);

// Returns the table of a text, the same one for the same text. Tables of texts stay until the
// program ends, for the models that use them, and feature_tables() does not list them. Errors:
// those of parse() and make_expression_table(); kUnsupported for more than 16 MiB of texts.
Result<const FeatureTable*> kept_expression_table(std::string_view text);

}  // namespace foretune
