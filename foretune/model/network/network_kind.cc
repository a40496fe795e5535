#include <algorithm>
#include <utility>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/network/network_scorer.h"

namespace foretune {
namespace {

// This kind has no share, but its files always had one.
constexpr double kNoShare = 0.5;

std::size_t field_count(const Model& model) {
  const ProblemSchema* const schema = find_problem_schema(model.problem_type);
  return schema == nullptr ? 0 : schema->fields.size();
}

std::size_t weights_of(const Network& network) {
  std::size_t weights = network.interaction.size();
  for (const std::vector<DenseLayer>* part : {&network.layers, &network.config_layers}) {
    for (const DenseLayer& layer : *part) {
      weights += layer.weights.size() + layer.bias.size();
    }
  }
  return weights;
}

}  // namespace

const std::vector<Network>& networks_of(const Model& model) {
  return parts_of<Network>(model.body);
}

void put_networks(ByteWriter& writer, double share, const std::vector<Network>& networks) {
  writer.put(share);
  writer.put_varint(networks.size());
  for (const Network& network : networks) {
    put_network(writer, network);
  }
}

Result<ReadNetworks> read_networks(std::span<const std::byte> section, const ColumnMap& columns) {
  constexpr std::size_t kMinBytes = 16;
  ByteReader reader(section);
  ReadNetworks out;
  out.share = reader.get<double>();
  const std::uint64_t count = reader.get_count(kMinBytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    FORETUNE_TRY(Network network, get_network(reader));
    FORETUNE_TRY_STATUS(columns.apply(network));
    out.networks.push_back(std::move(network));
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "its section 'networks' is damaged");
  }
  return out;
}

Status check_networks(const std::vector<Network>& networks, const Model& model,
                      const FeatureTable& table) {
  if (networks.empty()) {
    return fail(ErrorCode::kCorrupt, "a model of kind '", model.kind, "' has 0 networks");
  }
  for (std::size_t i = 0; i < networks.size(); ++i) {
    if (const Status status = networks[i].validate(table, field_count(model)); !status) {
      return fail_because(status.error(), "network ", i);
    }
  }
  return {};
}

double reference_score(const std::vector<Network>& networks, std::span<const double> row,
                       const Problem& problem) {
  double sum = 0;
  for (const Network& network : networks) {
    sum += predict_reference(network, row, problem.fields());
  }
  return sum / static_cast<double>(networks.size());
}

ModelFacts facts_of(const std::vector<Network>& networks) {
  ModelFacts facts;
  std::size_t weights = 0;
  for (const Network& network : networks) {
    weights += weights_of(network);
    facts.add("network",
              concat(network.architecture, " with ", count_text(weights_of(network)), " weights, ",
                     network.inputs.size() + network.field_inputs.size(), " inputs"));
  }
  facts.figures = {{"networks", static_cast<double>(networks.size())},
                   {"weights", static_cast<double>(weights)}};
  return facts;
}

void attribute(const std::vector<Network>& networks, const Problem& problem, double share,
               const Explained& out) {
  if (out.explained.empty()) {
    return;
  }
  const std::size_t width = out.columns->front().size();
  const auto row_of = [&](std::size_t i) {
    return out.rows.subspan(out.explained[i] * width, width);
  };
  for (std::size_t i = 1; i < out.explained.size(); ++i) {
    std::vector<double> row(row_of(0).begin(), row_of(0).end());
    std::vector<double> other(row_of(i).begin(), row_of(i).end());
    const double of_first = reference_score(networks, row, problem);
    const double of_second = reference_score(networks, other, problem);
    for (std::size_t f = 0; f < width; ++f) {
      if (row[f] == other[f]) {
        continue;
      }
      std::swap(row[f], other[f]);
      (*out.columns)[i][f] += share * 0.5 *
                              ((reference_score(networks, row, problem) - of_first) +
                               (of_second - reference_score(networks, other, problem)));
      std::swap(row[f], other[f]);
    }
  }
}

Result<std::unique_ptr<Scorer>> make_network_scorer(const std::vector<Network>& networks,
                                                    const Model& model, const FeatureTable& table) {
  return network_scorer(networks, table, field_count(model), model.residual_std);
}

const ModelKind& network_model_kind() {
  static const ModelKind kind{
      .name = "network",
      .description = "neural networks",
      // Readers of the first version ask every file for forests.
      .sections =
          {{.id = section_id("TREE"),
            .name = "forests",
            .put = [](ByteWriter& writer, const Model& /*model*/) { put_forests(writer, {}); }},
           {.id = section_id("NETW"),
            .name = "networks",
            .put = [](ByteWriter& writer,
                      const Model& model) { put_networks(writer, kNoShare, networks_of(model)); }}},
      .read = [](const Model& /*header*/, std::span<const std::span<const std::byte>> sections,
                 const ColumnMap& columns) -> Result<std::shared_ptr<const ModelBody>> {
        FORETUNE_TRY(const std::vector<Forest> forests, read_forests(sections[0], columns));
        if (!forests.empty()) {
          return fail(ErrorCode::kCorrupt, "the model has forests, which its kind does not have");
        }
        FORETUNE_TRY(ReadNetworks read, read_networks(sections[1], columns));
        return std::make_shared<const NetworkBody>(std::move(read.networks));
      },
      .check =
          [](const Model& model, const FeatureTable& table, bool /*was_just_read*/) {
            return check_networks(networks_of(model), model, table);
          },
      .make_scorer =
          [](const Model& model, const FeatureTable& table) {
            return make_network_scorer(networks_of(model), model, table);
          },
      .prepare =
          [](const Model& model, const FeatureTable& table, ConfigWords configs) {
            return prepare_networks(networks_of(model), table, model.residual_std, configs,
                                    model.fingerprint.hardware);
          },
      .reference_score =
          [](const Model& model, std::span<const double> row, const Problem& problem) {
            return reference_score(networks_of(model), row, problem);
          },
      .describe = [](const Model& model) { return facts_of(networks_of(model)); },
      .attribute = [](const Model& model, const Problem& problem,
                      const Explained& out) { attribute(networks_of(model), problem, 1, out); },
      .reads_fields = true};
  return kind;
}

void set_networks(Model& model, std::vector<Network> networks) {
  model.kind = network_model_kind().name;
  model.body = std::make_shared<const NetworkBody>(std::move(networks));
}

}  // namespace foretune
