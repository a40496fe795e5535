// Judges a model's picks over a whole set of products: tables of the verdicts, and figures.
//
//   FORETUNE_TRY(const JudgedSet judged, judge_all(selector, dataset, answers, 5));
//   report(selector, judged, {.margin = 0.06}, classes, figures);
//
// Thread safety: none. Cost: judging ranks the whole pool for every product; reporting draws 2,000
// random halves of the set and times the selection.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/pick_verdict.h"
#include "bench/shape_classes.h"
#include "foretune/base/figures.h"

namespace foretune::bench {

// The config behind the library's choice, by the problem's text, as `cublaslt_space --list answers`
// lists them. read_answers() of an empty path returns no answers.
using LibraryAnswers = std::map<std::string, Config>;
Result<LibraryAnswers> read_answers(const std::string& path);

struct JudgedProduct {
  Problem problem;
  Verdict verdict;
};
struct JudgedSet {
  std::string family;
  std::vector<JudgedProduct> products;
  std::size_t failed = 0;  // left out because a pick failed

  // Prints why a product without a verdict is left out.
  void add(const Problem& problem, const Judgement& judgement);
};
// Prints the products that are left out, and why. Errors: kInvalidArgument when none is left.
Result<JudgedSet> judge_all(const Selector& selector, const Dataset& dataset,
                            const LibraryAnswers& answers, std::size_t top);

// The classes of the products of a shape set; without any, reports have no breakdown.
using ProductClasses = std::unordered_map<Problem, std::vector<ShapeClass>>;

struct ReportOptions {
  double margin = 0;
  std::size_t top = 5;
};
// Errors: kNotFound for a product without a class, when `classes` is not empty.
Status report(const Selector& selector, const JudgedSet& judged, const ReportOptions& options,
              const ProductClasses& classes, Figures& figures);
// Reports on two families used together, on the products that both have.
Status report_union(const JudgedSet& first, const JudgedSet& second, const ReportOptions& options,
                    const ProductClasses& classes, Figures& figures);

// Results of a margin that is chosen on one half of the products and judged on the other, over many
// random halves. They show how much judging a margin on the products that chose it flatters.
struct HalvesResult {
  double geomean = 0;          // mean over the halves
  double share_slower = 0;     // mean share of products clearly slower than the library's choice
  double share_of_halves = 0;  // share of the halves in which that share is above kMaxSlower
};
// At most this share of the products may be clearly slower.
inline constexpr double kMaxSlower = 0.02;
// Chooses the margin with the highest geometric mean among those with which at most kMaxSlower of
// the half is clearly slower; when there is none, the margin with the fewest such products.
HalvesResult choose_on_halves(std::span<const Verdict> verdicts, std::span<const double> margins,
                              std::size_t halves);

}  // namespace foretune::bench
