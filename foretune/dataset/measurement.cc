#include "foretune/dataset/measurement.h"

#include <array>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr auto kOutcomes = std::to_array<std::string_view>(
    {"ok", "censored", "unsupported", "prepare failed", "crashed", "timed out", "wrong result"});
constexpr auto kStages =
    std::to_array<std::string_view>({"none", "prepare", "bind", "run", "verify", "evaluate"});

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

std::string_view to_string(Outcome outcome) {
  return kOutcomes.at(static_cast<std::size_t>(outcome));
}
std::optional<Outcome> parse_outcome(std::string_view text) {
  return parse_name<Outcome>(kOutcomes, text);
}
std::string_view to_string(Stage stage) { return kStages.at(static_cast<std::size_t>(stage)); }
std::optional<Stage> parse_stage(std::string_view text) { return parse_name<Stage>(kStages, text); }

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

std::uint64_t resume_key(const Problem& problem, const Config& config, const Context& context) {
  return hash_combine(hash_combine(problem.hash(), config.hash()), context.hash());
}

}  // namespace foretune
