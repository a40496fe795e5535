#include "bench/shape_classes.h"

#include <algorithm>
#include <array>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::bench {
namespace {

constexpr std::string_view kRegimeColumn = "regime";
constexpr std::string_view kDatasetSuffix = ".ftd";
constexpr std::array<std::string_view, 8> kSizeRegimes{
    "log-normal", "log-uniform", "uniform", "long-k", "square", "skinny", "odd", "large"};

Status read_regimes_of(std::string_view path, std::vector<RegimeShape>& shapes) {
  FORETUNE_TRY(const std::string text, read_text_file(std::string(path)));
  std::string_view head;
  std::size_t column = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty() || line.front() == '#') {
      continue;
    }
    const std::vector<std::string_view> parts = split(line, ',');
    if (head.empty()) {
      head = line;
      const auto found = std::find_if(parts.begin(), parts.end(), [](std::string_view name) {
        return trim(name) == kRegimeColumn;
      });
      if (found == parts.end()) {
        return fail(ErrorCode::kInvalidArgument, path, ": there is no column 'regime'");
      }
      column = static_cast<std::size_t>(found - parts.begin());
      continue;
    }
    const auto problems = parse_shape_set(concat(head, "\n", line));
    if (!problems) {
      return fail_because(problems.error(), path);
    }
    shapes.push_back({std::string(trim(parts[column])), problems->front()});
  }
  return {};
}

Result<std::vector<Problem>> read_problems(std::string_view path) {
  if (!path.ends_with(kDatasetSuffix)) {
    return read_shape_set(std::string(path));
  }
  FORETUNE_TRY(const Dataset dataset, read_dataset(std::string(path)));
  return std::vector<Problem>(dataset.problems().begin(), dataset.problems().end());
}

}  // namespace

Result<std::vector<RegimeShape>> read_regimes(std::string_view paths) {
  std::vector<RegimeShape> shapes;
  for (const std::string_view path : split(paths, ',')) {
    FORETUNE_TRY_STATUS(read_regimes_of(path, shapes));
  }
  return shapes;
}

bool is_network_regime(std::string_view regime) {
  return std::find(kSizeRegimes.begin(), kSizeRegimes.end(), regime) == kSizeRegimes.end();
}

std::string_view to_string(Novelty novelty) {
  switch (novelty) {
    case Novelty::kTrainedSizes:
      return "sizes trained on";
    case Novelty::kTrainedWeights:
      return "weights trained on, another m";
    case Novelty::kNewLayer:
      return "new layer";
    case Novelty::kNoLayer:
      return "sizes of no network";
  }
  return "unknown";
}

TrainedShapes::TrainedShapes(std::span<const Problem> problems) {
  for (const Problem& problem : problems) {
    if (const Result<GemmProblem> gemm = GemmProblem::from(problem)) {
      sizes_.insert({gemm->m(), gemm->n(), gemm->k(), gemm->batch()});
      weights_.insert({gemm->n(), gemm->k()});
    }
  }
}

Result<TrainedShapes> TrainedShapes::read(std::string_view paths) {
  std::vector<Problem> all;
  for (const std::string_view path : split(paths, ',')) {
    FORETUNE_TRY(const std::vector<Problem> problems, read_problems(path));
    all.insert(all.end(), problems.begin(), problems.end());
  }
  return TrainedShapes(all);
}

Novelty TrainedShapes::novelty(const RegimeShape& shape) const {
  const bool is_layer = is_network_regime(shape.regime);
  const Result<GemmProblem> gemm = GemmProblem::from(shape.problem);
  if (gemm && sizes_.contains({gemm->m(), gemm->n(), gemm->k(), gemm->batch()})) {
    return Novelty::kTrainedSizes;
  }
  if (!is_layer) {
    return Novelty::kNoLayer;
  }
  return gemm && weights_.contains({gemm->n(), gemm->k()}) ? Novelty::kTrainedWeights
                                                           : Novelty::kNewLayer;
}

std::vector<ShapeClass> classes_of(const RegimeShape& shape, const TrainedShapes* trained) {
  std::vector<ShapeClass> classes{{0, "all"}};
  const bool is_layer = is_network_regime(shape.regime);
  if (is_layer) {
    classes.push_back({1, "layers of networks"});
  }
  classes.push_back({2, shape.regime});
  if (trained == nullptr) {
    return classes;
  }
  const Novelty novelty = trained->novelty(shape);
  // For a regime without layers the class would repeat the regime.
  if (is_layer || novelty == Novelty::kTrainedSizes) {
    classes.push_back({3, std::string(to_string(novelty))});
    classes.push_back({4, concat(shape.regime, ": ", to_string(novelty))});
  }
  return classes;
}

}  // namespace foretune::bench
