// Plug-ins for tests, one of each kind: compiled with TEST_PLUGIN_GOOD and so on.
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "foretune/family/function_family.h"
#include "foretune/features/plain_table.h"
#include "foretune/plugin/plugin.h"
#include "foretune/search/strategy.h"

namespace {

using namespace foretune;  // NOLINT(google-build-using-namespace): as plug-ins do

#if defined(TEST_PLUGIN_CLASH)
constexpr std::string_view kName = "clash";
constexpr std::string_view kField = "model";  // an option of predict already
#else
constexpr std::string_view kName = "ring";
constexpr std::string_view kField = "beads";
#endif

// Problems that are sums of so many numbers.
[[maybe_unused]] const ProblemTypeInfo& ring_type() {
  static const std::array fields = [] {
    std::array list{size_field(kField)};
    list[0].help = "numbers to add up";
    return list;
  }();
  static constexpr std::array<DrawnSize, 1> kDrawn{{{0, 5, 1, 8, 8, 4096}}};
  static const ProblemTypeInfo info{
      .schema = {added_problem_type(kName), kName, 1, fields},
      .summary = "sums, for tests",
      .work = [](const Problem& problem) -> std::optional<ProblemWork> {
        const auto beads = static_cast<double>(problem.field(0));
        return ProblemWork{beads, 4 * beads};
      },
      .drawn_sizes = kDrawn};
  return info;
}

struct Beads final : ProblemData {
  explicit Beads(std::size_t count) : values(count, 1) {}
  void poison() override { sum = -1; }
  Support verify() override {
    return sum == static_cast<std::int64_t>(values.size()) ? Support::yes()
                                                           : Support::no("the sum is ", sum);
  }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(4 * values.size()); }
  std::vector<int> values;
  std::int64_t sum = 0;
};

std::function<void()> bind_beads(const Config& config, ProblemData& data) {
  auto& beads = dynamic_cast<Beads&>(data);
  const auto step = static_cast<std::size_t>(config.words[0]);
  return [&beads, step] {
    std::int64_t sum = 0;
    for (std::size_t first = 0; first < step; ++first) {
      for (std::size_t i = first; i < beads.values.size(); i += step) {
        sum += beads.values[i];
      }
    }
    beads.sum = sum;
  };
}

// The configs from the last to the first.
class Backwards final : public Strategy {
 public:
  explicit Backwards(const Space& space) : space_(space), left_(space.enumerable()->count()) {}
  std::vector<Config> ask(std::size_t count, Rng& /*rng*/) override {
    std::vector<Config> out;
    while (left_ > 0 && out.size() < count) {
      out.push_back(space_.enumerable()->unrank(--left_));
    }
    return out;
  }
  void tell(std::span<const Trial> /*finished*/) override {}

 private:
  const Space& space_;
  std::uint64_t left_;
};

Status add_ring(Plugin& plugin) {
  FORETUNE_TRY_STATUS(plugin.register_problem_type(ring_type()));
  FORETUNE_TRY(SpaceDefinition definition,
               SpaceDefinition::parse(
                   concat("space ", kName, " 1 ", kName, "\nparameter step [] 1 2 4 8\n")));
  FORETUNE_TRY(const auto space, CompiledSpace::create(std::move(definition)));
  FORETUNE_TRY_STATUS(plugin.register_feature_table(
      make_plain_table("ring-plain", ring_type(), space->definition().schema)));
  FORETUNE_TRY_STATUS(plugin.register_strategy(
      {.name = "backwards",
       .description = "from the last config to the first",
       .create = [](const Problem& /*problem*/, const Space& searched,
                    const StrategyOptions& /*options*/) -> Result<std::unique_ptr<Strategy>> {
         return std::make_unique<Backwards>(searched);
       }}));
  return plugin.register_family(function_family(
      {.name = std::string(kName),
       .description = "sums, for tests",
       .space = space,
       .feature_table = "ring-plain",
       .defaults = {std::vector<std::int32_t>{1}},
       .make_data = [](const Problem& problem,
                       std::uint64_t /*seed*/) -> Result<std::unique_ptr<ProblemData>> {
         return std::make_unique<Beads>(static_cast<std::size_t>(problem.field(0)));
       },
       .bind = &bind_beads}));
}

// Does what a bad plug-in does while it sets up.
[[maybe_unused]] Status misbehave(Plugin& plugin) {
#if defined(TEST_PLUGIN_ABORT)
  std::abort();
#elif defined(TEST_PLUGIN_SEGFAULT)
  static_cast<void>(std::raise(SIGSEGV));
#elif defined(TEST_PLUGIN_HANG)
  for (volatile bool forever = true; forever;) {
  }
#elif defined(TEST_PLUGIN_EXIT)
  std::exit(7);  // NOLINT(concurrency-mt-unsafe)
#elif defined(TEST_PLUGIN_THROW)
  throw std::runtime_error("no beads");
#elif defined(TEST_PLUGIN_TAKEN)
  FORETUNE_TRY_STATUS(add_ring(plugin));
  return plugin.register_family({.name = "cpu-gemm"});
#endif
  return add_ring(plugin);
}

#if defined(TEST_PLUGIN_EARLY)
// Before anybody asks for the version.
const bool kCrashed = [] { return std::raise(SIGSEGV) == 0; }();
#endif

}  // namespace

#if defined(TEST_PLUGIN_VERSION)
extern "C" __attribute__((visibility("default"))) const PluginEntry* foretune_plugin_1();
extern "C" const PluginEntry* foretune_plugin_1() {
  static const PluginEntry entry{"foretune 0.0.1, g++ 4", [](Plugin& plugin) -> Status {
                                   static_cast<void>(plugin);
                                   std::abort();  // must not be called
                                 }};
  return &entry;
}
#elif defined(TEST_PLUGIN_EMPTY)
extern "C" __attribute__((visibility("default"))) const PluginEntry* foretune_plugin_1();
extern "C" const PluginEntry* foretune_plugin_1() { return nullptr; }
#elif !defined(TEST_PLUGIN_NO_ENTRY)
FORETUNE_PLUGIN(misbehave)
#endif
