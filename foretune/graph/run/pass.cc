#include "foretune/graph/run/internal/pass.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <ratio>
#include <span>
#include <vector>

namespace foretune::graph {

namespace {

constexpr std::size_t kLineFloats = 16;
constexpr std::size_t kOutside = static_cast<std::size_t>(-1);

// Values that share one place, and the steps from the first write to the last read.
struct Place {
  std::size_t size = 0;
  std::size_t first = kOutside;
  std::size_t last = 0;
  bool is_outside = false;  // the caller's memory
  std::size_t offset = 0;
};

// Makes an operand that dies in a step that works in place and the step's result one place.
class Sharing {
 public:
  explicit Sharing(const Pass& pass) : pass_(pass), place_of_(pass.values.size()) {
    for (std::size_t i = 0; i < place_of_.size(); ++i) {
      place_of_[i] = static_cast<std::size_t>(pass.root_of(static_cast<ValueId>(i)));
    }
  }

  std::vector<Place> places() {
    std::vector<std::size_t> last_read(pass_.values.size(), 0);
    for (std::size_t step = 0; step < pass_.steps.size(); ++step) {
      for (const ValueId id : pass_.steps[step]->reads) {
        last_read[root(id)] = step;
      }
    }
    std::vector<std::size_t> joined(pass_.values.size());
    std::iota(joined.begin(), joined.end(), 0);
    std::vector<std::size_t> output_of(pass_.values.size(), 0);
    for (std::size_t i = 0; i < pass_.values.size(); ++i) {
      output_of[root(static_cast<ValueId>(i))] |= pass_.values[i].output >= 0 ? 1U : 0U;
    }
    for (std::size_t step = 0; step < pass_.steps.size(); ++step) {
      const Step& now = *pass_.steps[step];
      if (!now.works_in_place) {
        continue;
      }
      for (const ValueId id : now.reads) {
        const std::size_t from = root(id);
        const std::size_t to = root(now.write);
        if (last_read[from] == step && output_of[from] == 0 && pass_.values[from].input < 0 &&
            pass_.values[from].floats() == pass_.values[to].floats()) {
          joined[to] = joined[from];
          break;
        }
      }
    }
    for (std::size_t& place : place_of_) {
      place = joined[place];
    }
    return measure();
  }

  [[nodiscard]] std::size_t place_of(std::size_t value) const { return place_of_[value]; }

 private:
  [[nodiscard]] std::size_t root(ValueId id) const {
    return static_cast<std::size_t>(pass_.root_of(id));
  }

  std::vector<Place> measure() const {
    std::vector<Place> places(pass_.values.size());
    const auto use = [&](ValueId id, std::size_t step) {
      Place& place = places[place_of_[static_cast<std::size_t>(id)]];
      place.size = std::max(place.size, pass_.values[root(id)].floats());
      place.first = std::min(place.first, step);
      place.last = std::max(place.last, step);
    };
    for (std::size_t step = 0; step < pass_.steps.size(); ++step) {
      use(pass_.steps[step]->write, step);
      for (const ValueId id : pass_.steps[step]->reads) {
        use(id, step);
      }
    }
    for (std::size_t i = 0; i < pass_.values.size(); ++i) {
      if (pass_.values[i].input >= 0 || pass_.values[i].output >= 0) {
        places[place_of_[i]].is_outside = true;
      }
    }
    return places;
  }

  const Pass& pass_;
  std::vector<std::size_t> place_of_;  // first the roots, then the roots of what is shared
};

}  // namespace

void plan_memory(Pass& pass) {
  Sharing sharing(pass);
  std::vector<Place> places = sharing.places();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].first != kOutside && !places[i].is_outside) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return places[a].size > places[b].size; });
  std::vector<std::size_t> placed;
  pass.block_size = 0;
  for (const std::size_t now : order) {
    // The lowest gap between places in use at the same time.
    std::vector<std::size_t> others;
    for (const std::size_t other : placed) {
      if (places[other].first <= places[now].last && places[now].first <= places[other].last) {
        others.push_back(other);
      }
    }
    std::sort(others.begin(), others.end(),
              [&](std::size_t a, std::size_t b) { return places[a].offset < places[b].offset; });
    const std::size_t size = (places[now].size + kLineFloats - 1) / kLineFloats * kLineFloats;
    std::size_t offset = 0;
    for (const std::size_t other : others) {
      if (offset + size <= places[other].offset) {
        break;
      }
      const std::size_t end = places[other].offset + places[other].size;
      offset = std::max(offset, (end + kLineFloats - 1) / kLineFloats * kLineFloats);
    }
    places[now].offset = offset;
    pass.block_size = std::max(pass.block_size, offset + size);
    placed.push_back(now);
  }
  pass.places.assign(pass.values.size(), kOutside);
  for (std::size_t i = 0; i < pass.values.size(); ++i) {
    const Place& place = places[sharing.place_of(i)];
    if (!place.is_outside) {
      pass.places[i] = place.offset;
    }
  }
  // A value that lies in the caller's output carries the output's number, however it is shared.
  std::vector<std::int32_t> outputs(pass.values.size(), -1);
  std::vector<std::int32_t> inputs(pass.values.size(), -1);
  for (std::size_t i = 0; i < pass.values.size(); ++i) {
    const std::size_t place = sharing.place_of(i);
    outputs[place] = std::max(outputs[place], pass.values[i].output);
    inputs[place] = std::max(inputs[place], pass.values[i].input);
  }
  for (std::size_t i = 0; i < pass.values.size(); ++i) {
    pass.values[i].output = outputs[sharing.place_of(i)];
    pass.values[i].input = inputs[sharing.place_of(i)];
  }
}

std::vector<float*> Pass::place_values(std::span<const float* const> inputs,
                                       std::span<float* const> outputs,
                                       std::span<float> block) const {
  std::vector<float*> all(values.size(), nullptr);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].output >= 0) {
      all[i] = outputs[static_cast<std::size_t>(values[i].output)];
    } else if (values[i].input >= 0) {
      // No step writes an input.
      all[i] = const_cast<float*>(inputs[static_cast<std::size_t>(values[i].input)]);
    } else {
      all[i] = block.data() + places[i];
    }
  }
  return all;
}

Status Pass::run(std::span<const float* const> inputs, std::span<float* const> outputs,
                 std::span<float> block) const {
  const std::vector<float*> all = place_values(inputs, outputs, block);
  const Frame frame(all);
  for (const auto& step : steps) {
    FORETUNE_TRY_STATUS(step->run(frame));
  }
  return {};
}

Status Pass::run_observed(std::span<const float* const> inputs, std::span<float* const> outputs,
                          std::span<float> block,
                          const std::function<void(std::size_t, const Frame&)>& observe) const {
  const std::vector<float*> all = place_values(inputs, outputs, block);
  const Frame frame(all);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    FORETUNE_TRY_STATUS(steps[i]->run(frame));
    observe(i, frame);
  }
  return {};
}

Status Pass::run_timed(std::span<const float* const> inputs, std::span<float* const> outputs,
                       std::span<float> block, std::span<double> times) const {
  const std::vector<float*> all = place_values(inputs, outputs, block);
  const Frame frame(all);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    FORETUNE_TRY_STATUS(steps[i]->run(frame));
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - start;
    times[i] += elapsed.count();
  }
  return {};
}

}  // namespace foretune::graph
