// Bindings for LoopTune's environment: it has one or several computations, each episode uses one of
// them. One call takes a step and writes the mask and the observations into NumPy's memory.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/loop/canonical_schedule.h"
#include "foretune/loop/gym/environment.h"
#include "foretune/loop/gym/measured_evaluator.h"
#include "foretune/loop/gym/observe.h"
#include "python/bindings/bindings.h"
#include "python/bindings/loops.h"

namespace foretune::python {
namespace {

using loop::ActionSet;
using loop::Computation;
using loop::CursorAction;
using loop::State;
using loop::gym::CachedEvaluator;
using loop::gym::Environment;
using loop::gym::EnvironmentOptions;
using loop::gym::Evaluated;
using loop::gym::MeasuredEvaluator;
using loop::gym::Observation;
using loop::gym::ObservationKind;
using loop::gym::StepResult;
using loop::gym::Taken;

// Releases the interpreter lock only while a nest is compiled and timed: a step whose speed is
// known takes less time than releasing and reacquiring the lock.
class UnlockedEvaluator final : public loop::gym::Evaluator {
 public:
  explicit UnlockedEvaluator(loop::gym::Evaluator& evaluator) : evaluator_(&evaluator) {}
  Evaluated evaluate(const loop::Nest& nest) override {
    return without_lock([&] { return evaluator_->evaluate(nest); });
  }

 private:
  loop::gym::Evaluator* evaluator_;
};

// The state of one computation. Must not move, because its parts refer to each other.
struct Place {
  explicit Place(std::unique_ptr<MeasuredEvaluator> made)
      : measured(std::move(made)), unlocked(*measured), cached(unlocked) {}

  std::unique_ptr<MeasuredEvaluator> measured;
  UnlockedEvaluator unlocked;
  CachedEvaluator cached;
  std::optional<Environment> environment;
};

struct LoopStep {
  StepResult result;
  bool was_ignored = false;
};

class LoopEnvironment {
 public:
  struct Settings {
    ActionSet actions;
    loop::VectorUnit unit;
    double peak_gflops = 0;
    EnvironmentOptions options;
    bool ignores_illegal = false;
    std::vector<std::size_t> observations;     // indices of those that a step writes
    std::shared_ptr<KnownMeasurements> known;  // null: in memory only
  };

  LoopEnvironment(std::vector<Computation> computations, Settings settings)
      : computations_(std::move(computations)),
        settings_(std::move(settings)),
        places_(computations_.size()) {}
  ~LoopEnvironment() = default;
  LoopEnvironment(const LoopEnvironment&) = delete;
  LoopEnvironment& operator=(const LoopEnvironment&) = delete;

  // Marks the environment as in use. Other Python threads run during a measurement, and must not
  // enter; a second use raises.
  class Use {
   public:
    explicit Use(bool& flag) : flag_(&flag) {
      if (flag) {
        raise({ErrorCode::kInvalidArgument,
               "the environment is in use by another thread; one thread at a time may use it"});
      }
      flag = true;
    }
    ~Use() { *flag_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    bool* flag_;
  };
  [[nodiscard]] Use use() { return Use(in_use_); }

  // Starts an episode: at the plain nest when `start` is empty, else at a schedule, or at a state
  // with its cursor.
  Status reset(std::size_t index, const std::string& start) {
    const Computation& computation = computations_.at(index);
    std::optional<State> state;
    if (!start.empty()) {
      FORETUNE_TRY(state, parse_start(computation, start));
    }
    if (places_[index] == nullptr) {
      FORETUNE_TRY(places_[index], open(computation));
      if (!state) {
        begin(index);
        return {};
      }
    }
    if (state) {
      FORETUNE_TRY_STATUS(places_[index]->environment->reset(*std::move(state)));
    } else {
      places_[index]->environment->reset();
    }
    begin(index);
    return {};
  }

  // Takes an action. Returns the errors of Environment::step(); then nothing changes.
  Result<LoopStep> step(std::size_t action_index) {
    FORETUNE_TRY(Environment* const environment, current());
    if (action_index >= settings_.actions.size()) {
      return fail(ErrorCode::kInvalidArgument, "action ", action_index, " is not from 0 to ",
                  settings_.actions.size() - 1);
    }
    if (is_over()) {
      return fail(ErrorCode::kInvalidArgument, "the episode is over after ", steps(),
                  " steps, and the next one starts with a reset");
    }
    const CursorAction action = settings_.actions[action_index];
    const bool is_legal = environment->legal_actions()[action_index];
    Result<StepResult> result = environment->step(action);
    LoopStep out;
    if (result) {
      out.result = *std::move(result);
    } else if (settings_.ignores_illegal && !is_legal) {
      ++ignored_;
      out.was_ignored = true;
      out.result.reason = concat(to_string(action), ": ", result.error().message);
    } else {
      return fail(ErrorCode::kInvalidArgument, to_string(action), ": ", result.error().message);
    }
    // Recomputed here, because the environment does not count ignored steps.
    out.result.truncated = !out.result.done && steps() >= settings_.options.max_steps;
    is_cut_short_ = out.result.truncated;
    return out;
  }

  Result<Environment*> current() {
    if (current_ == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "the environment starts with a reset");
    }
    return &*current_->environment;
  }
  [[nodiscard]] bool is_over() const {
    return is_cut_short_ || (current_ != nullptr && current_->environment->is_over());
  }
  [[nodiscard]] std::size_t steps() const {
    return ignored_ + (current_ == nullptr ? 0 : current_->environment->history().size());
  }

  void write_mask(std::span<bool> out) const {
    if (out.size() != settings_.actions.size()) {
      raise({ErrorCode::kInvalidArgument, "a mask has one place for each action"});
    }
    std::fill(out.begin(), out.end(), false);
    if (current_ != nullptr && !is_over()) {
      const std::vector<bool>& legal = current_->environment->legal_actions();
      std::copy(legal.begin(), legal.end(), out.begin());
    }
  }

  void clear_cache() {
    for (const std::unique_ptr<Place>& place : places_) {
      if (place != nullptr) {
        place->cached.clear();
      }
    }
  }
  [[nodiscard]] const std::vector<std::unique_ptr<Place>>& places() const { return places_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  Result<State> parse_start(const Computation& computation, const std::string& text) const {
    const loop::Limits limits{.max_loops = settings_.options.max_loops};
    if (text.find('@') != std::string::npos) {
      return loop::parse_state(computation, text, limits);
    }
    FORETUNE_TRY(const std::vector<loop::Action> actions,
                 loop::parse_schedule(computation, text, limits));
    State state;
    FORETUNE_TRY(state.nest, loop::apply_all(computation, actions, limits));
    return state;
  }

  // Makes the state of a computation, with an episode started at the plain nest.
  Result<std::unique_ptr<Place>> open(const Computation& computation) const {
    FORETUNE_TRY(
        std::unique_ptr<MeasuredEvaluator> measured,
        MeasuredEvaluator::create(computation, {.isa = settings_.unit.isa}, settings_.known));
    auto place = std::make_unique<Place>(std::move(measured));
    FORETUNE_TRY(place->environment,
                 Environment::create(computation, settings_.actions, place->cached,
                                     settings_.peak_gflops, settings_.options));
    return place;
  }

  void begin(std::size_t index) {
    current_ = places_[index].get();
    ignored_ = 0;
    is_cut_short_ = false;
  }

  std::vector<Computation> computations_;
  Settings settings_;
  std::vector<std::unique_ptr<Place>> places_;  // by computation; opened when first wanted
  Place* current_ = nullptr;
  std::size_t ignored_ = 0;  // steps of this episode that did nothing
  bool is_cut_short_ = false;
  bool in_use_ = false;
};

std::string schedule_text(const Environment& environment) {
  return loop::to_text(environment.computation(),
                       loop::schedule_of(environment.computation(), environment.state().nest));
}

nb::object as_object(Observation observation) {
  if (const auto* const number = std::get_if<double>(&observation)) {
    return nb::cast(*number);
  }
  return nb::cast(std::get<std::string>(observation));
}

// Writes each observation into the array at its place in `out`; numbers and texts replace a None.
void write_observations(LoopEnvironment& self, const Environment& environment, nb::list& out) {
  const std::vector<std::size_t>& wanted = self.settings().observations;
  if (out.size() != wanted.size()) {
    raise({ErrorCode::kInternal, "one place for each observation"});
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const nb::object place = out[i];
    if (place.is_none()) {
      out[i] = as_object(loop::gym::observe(environment, wanted[i]));
      continue;
    }
    const ArrayMemory memory(place, ArrayMemory::kWrite);
    std::size_t floats = 1;
    for (const std::size_t size :
         loop::gym::observation_shape(wanted[i], environment.options(), environment.actions())) {
      floats *= size;
    }
    if (memory.bytes() != floats * sizeof(float)) {
      raise({ErrorCode::kInternal, "an array of another size than its observation"});
    }
    loop::gym::write_observation(environment, wanted[i], memory.floats());
  }
}

void write_mask(LoopEnvironment& self, nb::handle mask) {
  self.write_mask(ArrayMemory(mask, ArrayMemory::kWrite).bools());
}

void write(LoopEnvironment& self, nb::handle mask, nb::list out) {
  write_mask(self, mask);
  write_observations(self, *checked(self.current()), out);
}

// Returns (reward, done, truncated, was ignored, GFLOPS, reason, schedule).
nb::tuple step(LoopEnvironment& self, std::size_t action, nb::handle mask, nb::list out) {
  const auto alone = self.use();
  const LoopStep taken = checked(self.step(action));
  write(self, mask, std::move(out));
  const Environment& environment = *checked(self.current());
  const StepResult& result = taken.result;
  return nb::make_tuple(result.reward, result.done, result.truncated, taken.was_ignored,
                        environment.gflops(), result.reason, schedule_text(environment));
}

// Returns (GFLOPS, reason, schedule).
nb::tuple reset(LoopEnvironment& self, std::size_t index, const std::string& start, nb::handle mask,
                nb::list out) {
  const auto alone = self.use();
  checked(self.reset(index, start));
  write(self, mask, std::move(out));
  const Environment& environment = *checked(self.current());
  const Evaluated& evaluated = environment.evaluated();
  return nb::make_tuple(environment.gflops(), evaluated.ok ? std::string() : evaluated.reason,
                        schedule_text(environment));
}

nb::object observe(LoopEnvironment& self, const std::string& name, nb::object array) {
  const auto alone = self.use();
  const Environment& environment = *checked(self.current());
  const std::size_t index = checked(loop::gym::find_observation(name));
  if (array.is_none()) {
    return as_object(loop::gym::observe(environment, index));
  }
  const ArrayMemory memory(array, ArrayMemory::kWrite);
  loop::gym::write_observation(environment, index, memory.floats());
  return array;
}

nb::list history(LoopEnvironment& self) {
  const auto alone = self.use();
  nb::list out;
  for (const Taken& taken : checked(self.current())->history()) {
    out.append(nb::make_tuple(std::string(to_string(taken.action)), taken.gflops, taken.reward));
  }
  return out;
}

nb::tuple best(LoopEnvironment& self) {
  const auto alone = self.use();
  const Environment& environment = *checked(self.current());
  const Environment::Best& best = environment.best();
  return nb::make_tuple(
      loop::to_text(environment.computation(),
                    loop::schedule_of(environment.computation(), best.state.nest)),
      best.gflops, best.seconds, best.steps);
}

// Returns hits, misses and the number of cached schedules, summed over all computations.
nb::tuple cache_info(LoopEnvironment& self) {
  const auto alone = self.use();
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::size_t size = 0;
  for (const std::unique_ptr<Place>& place : self.places()) {
    if (place != nullptr) {
      const std::uint64_t from_file = place->measured->known_answers();
      hits += place->cached.hits() + from_file;
      misses += place->cached.misses() - from_file;
      size += place->cached.size();
    }
  }
  return nb::make_tuple(hits, misses, size);
}

ActionSet actions_of(const std::string& names) {
  if (names.empty()) {
    return ActionSet();
  }
  return names == "all" ? ActionSet::all() : checked(ActionSet::parse(names));
}

std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> out;
  const ActionSet set = actions_of(text);
  for (const CursorAction action : set.actions()) {
    out.emplace_back(to_string(action));
  }
  return out;
}

// Returns (name, kind, shape, unit, what) of every observation.
nb::list observations(const std::string& actions, std::size_t max_loops) {
  const ActionSet set = actions_of(actions);
  nb::list out;
  for (std::size_t i = 0; i < loop::gym::observations().size(); ++i) {
    const loop::gym::ObservationInfo& info = loop::gym::observations()[i];
    nb::list shape;
    for (const std::size_t size :
         loop::gym::observation_shape(i, {.max_loops = max_loops, .max_steps = 1}, set)) {
      shape.append(size);
    }
    const char* const kind = info.kind == ObservationKind::kNumber        ? "number"
                             : info.kind == ObservationKind::kFloatTensor ? "tensor"
                                                                          : "text";
    out.append(nb::make_tuple(std::string(info.name), std::string(kind), nb::tuple(shape),
                              std::string(info.unit), std::string(info.what)));
  }
  return out;
}

std::unique_ptr<LoopEnvironment> make(const std::vector<const Computation*>& computations,
                                      const std::string& actions, const std::string& isa,
                                      double peak_gflops, std::size_t max_loops,
                                      std::size_t max_steps, bool ignores_illegal,
                                      const std::vector<std::string>& observed,
                                      const std::string& cache) {
  LoopEnvironment::Settings settings{.actions = actions_of(actions),
                                     .unit = checked(unit_of_this_cpu(isa)),
                                     .peak_gflops = peak_gflops,
                                     .options = {.max_loops = max_loops, .max_steps = max_steps},
                                     .ignores_illegal = ignores_illegal,
                                     .observations = {},
                                     .known = nullptr};
  for (const std::string& name : observed) {
    settings.observations.push_back(checked(loop::gym::find_observation(name)));
  }
  if (!cache.empty()) {
    settings.known = checked(
        MeasuredEvaluator::open_known(cache, *computations.front(), {.isa = settings.unit.isa}));
  }
  std::vector<Computation> copies;
  for (const Computation* const computation : computations) {
    copies.push_back(*computation);
  }
  return std::make_unique<LoopEnvironment>(std::move(copies), std::move(settings));
}

}  // namespace

void bind_loop_environment(nb::module_& module) {
  nb::class_<LoopEnvironment>(module, "LoopEnvironment")
      .def("reset", &reset, nb::arg("computation"), nb::arg("start"), nb::arg("mask"),
           nb::arg("observations"))
      .def("step", &step, nb::arg("action"), nb::arg("mask"), nb::arg("observations"))
      .def(
          "write_mask",
          [](LoopEnvironment& self, nb::handle mask) {
            const auto alone = self.use();
            write_mask(self, mask);
          },
          nb::arg("mask"))
      .def("observe", &observe, nb::arg("name"), nb::arg("array").none())
      .def("history", &history)
      .def("best", &best)
      .def("cache_info", &cache_info)
      .def("clear_cache",
           [](LoopEnvironment& self) {
             const auto alone = self.use();
             self.clear_cache();
           })
      .def_prop_ro("state", [](LoopEnvironment& self) {
        const auto alone = self.use();
        const Environment& environment = *checked(self.current());
        return loop::to_text(environment.computation(), environment.state());
      });
  module.def("make_loop_environment", &make, nb::arg("computations"), nb::arg("actions"),
             nb::arg("isa"), nb::arg("peak_gflops"), nb::arg("max_loops"), nb::arg("max_steps"),
             nb::arg("ignores_illegal"), nb::arg("observations"), nb::arg("cache"));
  module.def("loop_actions", &names_of, nb::arg("actions"));
  module.def("loop_observations", &observations, nb::arg("actions"), nb::arg("max_loops"));
}

}  // namespace foretune::python
