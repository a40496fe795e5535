// Bindings for a search over one choice per place, and for fronts of points: what the tuner of
// approximations is built of.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/metrics/pareto.h"
#include "foretune/problem/problem.h"
#include "foretune/search/strategy.h"
#include "foretune/space/config.h"
#include "foretune/space/space.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

using Points = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Choices = std::vector<std::int32_t>;

// Spaces of more combinations are sampled, not listed.
constexpr std::uint64_t kMaxListed = std::uint64_t{1} << 16U;

// One of so many choices at each of several places, every combination of which is legal. Choices
// have no order: all others of a place are one step away.
class ChoiceSpace final : public Space, public EnumerableSpace {
 public:
  // Every place has at least one choice.
  explicit ChoiceSpace(Choices sizes) : sizes_(std::move(sizes)) {
    schema_.name = "choices";
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      FORETUNE_CHECK(sizes_[i] > 0);
      schema_.parameters.push_back({.name = concat("place", i), .labels = {}});
      const auto size = static_cast<std::uint64_t>(sizes_[i]);
      count_ = count_ > kMaxListed / size ? 0 : count_ * size;
    }
    id_ = schema_.id();
  }

  [[nodiscard]] Config config_of(std::span<const std::int32_t> choices) const {
    Config config{.schema = id_};
    for (const std::int32_t choice : choices) {
      config.words.push_back(choice);
    }
    return config;
  }

  const ConfigSchema& schema() const override { return schema_; }
  Support why_not(const Config& config) const override {
    if (config.schema != id_ || config.words.size() != sizes_.size()) {
      return Support::no("there are ", sizes_.size(), " places, not ", config.words.size());
    }
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (config.words[i] < 0 || config.words[i] >= sizes_[i]) {
        return Support::no("place ", i, " has choices 0 to ", sizes_[i] - 1, ", not ",
                           config.words[i]);
      }
    }
    return Support::yes();
  }
  // A random share of the places leaves its first choice, so that large spaces are also drawn from
  // near the place where all compute exactly.
  Result<Config> sample(Rng& rng) const override {
    const double share = rng.uniform();
    Config config{.schema = id_};
    for (const std::int32_t size : sizes_) {
      const auto drawn = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(size)));
      config.words.push_back(rng.uniform() < share * share ? drawn : 0);
    }
    return config;
  }
  std::vector<Config> neighbours(const Config& config) const override {
    std::vector<Config> found;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      for (std::int32_t choice = 0; choice < sizes_[i]; ++choice) {
        if (choice != config.words[i]) {
          found.push_back(config);
          found.back().words[i] = choice;
        }
      }
    }
    return found;
  }
  Config canonical(const Config& config) const override { return config; }
  // count_ is 0 where there are too many.
  const EnumerableSpace* enumerable() const override { return count_ == 0 ? nullptr : this; }
  std::uint64_t count() const override { return count_; }
  Config unrank(std::uint64_t index) const override {
    FORETUNE_CHECK(index < count_);
    Config config{.schema = id_};
    for (const std::int32_t size : sizes_) {
      config.words.push_back(static_cast<std::int32_t>(index % static_cast<std::uint64_t>(size)));
      index /= static_cast<std::uint64_t>(size);
    }
    return config;
  }

 private:
  Choices sizes_;
  ConfigSchema schema_;
  std::uint64_t id_ = 0;
  std::uint64_t count_ = 1;
};

// A strategy with its space and random numbers.
class ChoiceSearch {
 public:
  ChoiceSearch(const std::string& strategy, Choices sizes, std::size_t trials, std::uint64_t seed)
      : space_(std::make_unique<ChoiceSpace>(std::move(sizes))), rng_(seed) {
    // Strategies without a model read nothing of the problem.
    const Problem none = checked(Problem::parse("gemm op=mm m=1 n=1 k=1"));
    strategy_ = checked(create_strategy(strategy, none, *space_, {.sample_size = trials}));
  }

  std::vector<Choices> ask(std::size_t count) {
    std::vector<Choices> asked;
    for (const Config& config : strategy_->ask(count, rng_)) {
      asked.emplace_back(config.words.begin(), config.words.end());
    }
    return asked;
  }

  void tell(const Choices& choices, std::optional<double> value, double violation) {
    Trial trial{.config = space_->config_of(choices), .value = value};
    if (const Support legal = space_->why_not(trial.config); !legal) {
      raise({ErrorCode::kInvalidArgument, legal.reason()});
    }
    if (violation > 0) {
      trial.feasible = false;
      trial.value = infeasible_value(violation);
    }
    strategy_->tell(std::span(&trial, 1));
  }

 private:
  std::unique_ptr<ChoiceSpace> space_;  // does not move: the strategy refers to it
  Rng rng_;
  std::unique_ptr<Strategy> strategy_;
};

PointSet point_set(const Points& points) {
  return {.values = std::span(points.data(), points.size()), .dimensions = points.shape(1)};
}

}  // namespace

void bind_choices(nb::module_& module) {
  nb::class_<ChoiceSearch>(module, "ChoiceSearch")
      .def(nb::init<const std::string&, Choices, std::size_t, std::uint64_t>(), nb::arg("strategy"),
           nb::arg("sizes"), nb::arg("trials"), nb::arg("seed"))
      .def("ask", &ChoiceSearch::ask, nb::arg("count"))
      .def("tell", &ChoiceSearch::tell, nb::arg("choices"), nb::arg("value").none(),
           nb::arg("violation") = 0.0);
  module.def(
      "pareto_front", [](const Points& points) { return pareto_front(point_set(points)); },
      nb::arg("points").noconvert());
  module.def(
      "take_best",
      [](const Points& points, std::size_t count) { return take_best(point_set(points), count); },
      nb::arg("points").noconvert(), nb::arg("count"));
}

}  // namespace foretune::python
