#include "foretune/families/network_cpu/network_space.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/run/variant.h"

namespace foretune {

const ConfigSchema& network_schema() {
  static const ConfigSchema schema{
      .name = "network-knobs", .version = 1, .kind = SchemaKind::kSequence, .parameters = {}};
  return schema;
}

NetworkSpace::NetworkSpace(const graph::Network& network, const std::vector<std::int32_t>& knobs)
    : network_(network), catalogue_(knobs) {
  for (std::size_t i = 0; i < network_.nodes().size(); ++i) {
    const graph::Node& node = network_.nodes()[i];
    if (!graph::has_weights(*node.op)) {
      continue;
    }
    names_.push_back(node.name);
    nodes_.push_back(static_cast<std::int32_t>(i));
    std::vector<std::int32_t> own{0};
    for (const std::int32_t knob : knobs) {
      const auto variant = graph::variant_of_knob(knob);
      if (knob != 0 && variant && graph::can_run(network_, node, *variant)) {
        own.push_back(knob);
      }
    }
    offered_.push_back(std::move(own));
  }
}

Config NetworkSpace::exact() const {
  return {network_schema().id(), Config::Words(names_.size(), 0)};
}

Support NetworkSpace::why_not(const Config& config) const {
  if (config.schema != network_schema().id() || config.words.size() != names_.size()) {
    return Support::no("a config has a knob for each of the ", names_.size(), " layers, not ",
                       config.words.size());
  }
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto variant = graph::variant_of_knob(config.words[i]);
    if (!variant) {
      return Support::no(names_[i], ": ", variant.error().message);
    }
    const graph::Node& node = network_.nodes()[static_cast<std::size_t>(nodes_[i])];
    if (const Support can = graph::can_run(network_, node, *variant); !can) {
      return Support::no(names_[i], ": ", can.reason());
    }
  }
  return Support::yes();
}

Result<Config> NetworkSpace::sample(Rng& rng) const {
  Config config = exact();
  std::vector<std::size_t> order(names_.size());
  std::iota(order.begin(), order.end(), 0);
  rng.shuffle(std::span(order));
  const std::size_t count = 1 + rng.below(names_.size());
  for (const std::size_t layer : std::span(order).first(count)) {
    const std::vector<std::int32_t>& own = offered_[layer];
    if (own.size() > 1) {
      config.words[layer] = own[1 + rng.below(own.size() - 1)];
    }
  }
  return config;
}

std::vector<Config> NetworkSpace::neighbours(const Config& config) const {
  std::vector<Config> out;
  for (std::size_t layer = 0; layer < names_.size(); ++layer) {
    for (const std::int32_t knob : offered_[layer]) {
      if (knob != config.words[layer]) {
        out.push_back(config);
        out.back().words[layer] = knob;
      }
    }
  }
  return out;
}

std::vector<Config> NetworkSpace::proposals(std::size_t count) const {
  std::vector<Config> out;
  for (const std::int32_t knob : catalogue_) {
    Config config = exact();
    for (std::size_t layer = 0; layer < names_.size(); ++layer) {
      const std::vector<std::int32_t>& own = offered_[layer];
      if (std::find(own.begin(), own.end(), knob) != own.end()) {
        config.words[layer] = knob;
      }
    }
    if (out.size() < count && config != exact()) {
      out.push_back(std::move(config));
    }
  }
  return out;
}

std::string NetworkSpace::describe(const Config& config) const {
  std::string text;
  for (std::size_t i = 0; i < names_.size() && i < config.words.size(); ++i) {
    if (config.words[i] != 0) {
      text += concat(text.empty() ? "" : " ", names_[i], "=", graph::knob_text(config.words[i]));
    }
  }
  return text.empty() ? "exact" : text;
}

}  // namespace foretune
