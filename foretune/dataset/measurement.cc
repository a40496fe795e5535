#include "foretune/dataset/measurement.h"

#include <array>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr auto kOutcomes = std::to_array<std::string_view>(
    {"ok", "censored", "unsupported", "prepare failed", "crashed", "timed out", "wrong result"});
constexpr auto kStages =
    std::to_array<std::string_view>({"none", "prepare", "bind", "run", "verify"});

template <class Enum, std::size_t N>
std::optional<Enum> parse_name(const std::array<std::string_view, N>& names,
                               std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names.at(i) == text) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

std::span<const std::string_view> outcome_names() { return kOutcomes; }
bool is_known(Outcome outcome) { return static_cast<std::size_t>(outcome) < kOutcomes.size(); }
std::span<const std::string_view> stage_names() { return kStages; }
bool is_known(Stage stage) { return static_cast<std::size_t>(stage) < kStages.size(); }
bool is_known(MetricId id) { return static_cast<std::size_t>(id) < metric_infos().size(); }

std::string_view to_string(Outcome outcome) {
  return kOutcomes.at(static_cast<std::size_t>(outcome));
}
std::optional<Outcome> parse_outcome(std::string_view text) {
  return parse_name<Outcome>(kOutcomes, text);
}
std::string_view to_string(Stage stage) { return kStages.at(static_cast<std::size_t>(stage)); }
std::optional<Stage> parse_stage(std::string_view text) { return parse_name<Stage>(kStages, text); }

const std::vector<MetricInfo>& metric_infos() {
  static const std::vector<MetricInfo> infos{
      {MetricId::kTimeNs, "time_ns", "ns", true},  {MetricId::kMedianNs, "median_ns", "ns", true},
      {MetricId::kPackNs, "pack_ns", "ns", true},  {MetricId::kEnergyJ, "energy_j", "J", true},
      {MetricId::kBytes, "bytes", "B", true},      {MetricId::kQosTune, "qos_tune", "", false},
      {MetricId::kQosTest, "qos_test", "", false},
  };
  return infos;
}

const MetricInfo& metric_info(MetricId id) {
  return metric_infos().at(static_cast<std::size_t>(id));
}

std::optional<MetricId> parse_metric(std::string_view name) {
  for (const MetricInfo& info : metric_infos()) {
    if (info.name == name) {
      return info.id;
    }
  }
  return std::nullopt;
}

std::string_view to_string(CacheState state) {
  return state == CacheState::kCold ? "cold" : "warm";
}

std::uint64_t Context::hash() const {
  std::uint64_t hash = hash64(device, machine);
  for (const std::int64_t value : {std::int64_t{threads}, static_cast<std::int64_t>(cache),
                                   std::int64_t{clock_mhz}, std::int64_t{fidelity}}) {
    hash = hash_combine(hash, static_cast<std::uint64_t>(value));
  }
  return hash;
}

std::string Context::text() const {
  return concat(device, ", ", threads, threads == 1 ? " thread, " : " threads, ", to_string(cache),
                " caches",
                clock_mhz > 0 ? concat(", locked at ", clock_mhz, " MHz") : std::string(),
                fidelity != 0 ? concat(", fidelity ", fidelity) : std::string());
}

const MetricValue* Measurement::find(MetricId metric) const {
  for (const MetricValue& value : metrics) {
    if (value.metric == metric) {
      return &value;
    }
  }
  return nullptr;
}

std::uint64_t resume_key(const Problem& problem, const Config& config, const Context& context) {
  return hash_combine(hash_combine(problem.hash(), config.hash()), context.hash());
}

}  // namespace foretune
