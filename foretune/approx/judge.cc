#include "foretune/approx/judge.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "foretune/base/check.h"
#include "foretune/graph/run/plan.h"

namespace foretune::approx {

namespace {

// Images of one call.
constexpr std::int64_t kImagesOfCall = 64;

bool is_right(std::span<const float> row, std::int32_t label) {
  return std::max_element(row.begin(), row.end()) - row.begin() == label;
}

}  // namespace

Result<std::vector<float>> outputs_of(const graph::Task& task,
                                      const std::shared_ptr<graph::Executor>& executor,
                                      const graph::Calibration& ranges,
                                      const graph::Variants& variants, std::int64_t count) {
  if (count < 1 || count > task.tuning.count()) {
    return fail(ErrorCode::kInvalidArgument, "the task has ", task.tuning.count(),
                " tuning images, not ", count);
  }
  FORETUNE_TRY(const auto plan,
               graph::NetworkPlan::create(
                   task.network, executor,
                   {.images = kImagesOfCall, .variants = variants, .calibration = ranges}));
  std::vector<float> input(static_cast<std::size_t>(kImagesOfCall * task.image_elements()), 0.0F);
  std::vector<std::vector<float>> arrays;
  std::vector<float*> pointers;
  for (const std::int64_t elements : plan->output_elements()) {
    pointers.push_back(arrays.emplace_back(static_cast<std::size_t>(elements)).data());
  }
  const float* const from = input.data();
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(count * task.classes()));
  for (std::int64_t first = 0; first < count; first += kImagesOfCall) {
    const std::int64_t now = std::min(kImagesOfCall, count - first);
    task.read_images(task.tuning, first, now, input);
    FORETUNE_TRY_STATUS(plan->run({&from, 1}, pointers));
    rows.insert(rows.end(), arrays[0].begin(),
                arrays[0].begin() + static_cast<std::ptrdiff_t>(now * task.classes()));
  }
  return rows;
}

double PairedCounts::loss() const {
  return 100.0 * static_cast<double>(only_first - only_second) / static_cast<double>(images);
}

double PairedCounts::margin(double quantile, std::int64_t others) const {
  const auto count = static_cast<double>(images);
  const double first = static_cast<double>(only_first + 1) / (count + 2);
  const double second = static_cast<double>(only_second + 1) / (count + 2);
  const double variance = first + second - (first - second) * (first - second);
  return quantile * 100 * std::sqrt(variance * (1 / count + 1 / static_cast<double>(others)));
}

PairedCounts compare_rights(std::span<const float> first, std::span<const float> second,
                            std::span<const std::int32_t> labels, std::int64_t classes) {
  const auto width = static_cast<std::size_t>(classes);
  FORETUNE_CHECK(first.size() == labels.size() * width && second.size() == first.size());
  PairedCounts counts{.images = static_cast<std::int64_t>(labels.size())};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const bool by_first = is_right(first.subspan(i * width, width), labels[i]);
    const bool by_second = is_right(second.subspan(i * width, width), labels[i]);
    counts.only_first += by_first && !by_second ? 1 : 0;
    counts.only_second += by_second && !by_first ? 1 : 0;
  }
  return counts;
}

}  // namespace foretune::approx
