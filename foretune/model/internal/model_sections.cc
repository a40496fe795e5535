#include "foretune/model/internal/model_sections.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace foretune {
namespace {

constexpr std::size_t kStringBytes = 4;  // the least of a string

// ---- sections: a pair of functions each, which must mirror each other ---------------------------

void put_identity(ByteWriter& writer, const Model& model) {
  writer.put_string(model.kind);
  writer.put_string(model.family);
  writer.put(static_cast<std::uint16_t>(model.problem_type), model.problem_schema);
  writer.put_string(model.feature_table);
  writer.put(model.feature_table_id);
  writer.put_string(model.target);
  writer.put(model.residual_std, model.seed, model.data_fingerprint.high,
             model.data_fingerprint.low);
}

Status get_identity(ByteReader& reader, Model& model) {
  model.kind = reader.get_string();
  model.family = reader.get_string();
  model.problem_type = static_cast<ProblemType>(reader.get<std::uint16_t>());
  model.problem_schema = reader.get<std::uint64_t>();
  model.feature_table = reader.get_string();
  model.feature_table_id = reader.get<std::uint64_t>();
  model.target = reader.get_string();
  model.residual_std = reader.get<double>();
  model.seed = reader.get<std::uint64_t>();
  model.data_fingerprint.high = reader.get<std::uint64_t>();
  model.data_fingerprint.low = reader.get<std::uint64_t>();
  return {};
}

void put_schema(ByteWriter& writer, const Model& model) {
  const ConfigSchema& schema = model.config_schema;
  writer.put_string(schema.name);
  writer.put(schema.version, static_cast<std::uint8_t>(schema.kind));
  writer.put_varint(schema.parameters.size());
  for (const Parameter& parameter : schema.parameters) {
    writer.put_string(parameter.name);
    writer.put_varint(parameter.labels.size());
    for (const std::string& label : parameter.labels) {
      writer.put_string(label);
    }
  }
}

Status get_schema(ByteReader& reader, Model& model) {
  ConfigSchema& schema = model.config_schema;
  schema.name = reader.get_string();
  schema.version = reader.get<std::uint32_t>();
  const auto kind = reader.get<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(SchemaKind::kSequence)) {
    return fail(ErrorCode::kUnsupported, "config schemas of kind ", kind,
                " are not known to this version");
  }
  schema.kind = static_cast<SchemaKind>(kind);
  schema.parameters.resize(reader.get_count(kStringBytes + 1));
  for (Parameter& parameter : schema.parameters) {
    parameter.name = reader.get_string();
    parameter.labels.resize(reader.get_count(kStringBytes));
    for (std::string& label : parameter.labels) {
      label = reader.get_string();
    }
  }
  return {};
}

void put_space(ByteWriter& writer, const Model& model) { writer.put_string(model.space_text); }

Status get_space(ByteReader& reader, Model& model) {
  model.space_text = reader.get_string();
  return {};
}

void put_features(ByteWriter& writer, const Model& model) { writer.put_string(model.feature_text); }

Status get_features(ByteReader& reader, Model& model) {
  model.feature_text = reader.get_string();
  return {};
}

void put_fingerprint(ByteWriter& writer, const Fingerprint& machine) {
  writer.put_string(machine.device);
  writer.put_string(machine.isa);
  writer.put_string(machine.system);
  writer.put_string(machine.hardware.text());
}

Status get_fingerprint(ByteReader& reader, Fingerprint& machine) {
  machine.device = reader.get_string();
  machine.isa = reader.get_string();
  machine.system = reader.get_string();
  FORETUNE_TRY(machine.hardware, Hardware::parse(reader.get_string()));
  return {};
}

void put_machine(ByteWriter& writer, const Model& model) {
  put_fingerprint(writer, model.fingerprint);
}

Status get_machine(ByteReader& reader, Model& model) {
  return get_fingerprint(reader, model.fingerprint);
}

void put_machines(ByteWriter& writer, const Model& model) {
  writer.put_varint(model.machines.size());
  for (const Fingerprint& machine : model.machines) {
    put_fingerprint(writer, machine);
  }
}

Status get_machines(ByteReader& reader, Model& model) {
  model.machines.resize(reader.get_count(4 * kStringBytes));
  for (Fingerprint& machine : model.machines) {
    FORETUNE_TRY_STATUS(get_fingerprint(reader, machine));
  }
  return {};
}

void put_pool(ByteWriter& writer, const Model& model) {
  writer.put_varint(model.pool.size());
  for (const Config& config : model.pool) {
    writer.put_varint(config.words.size());
    for (const std::int32_t word : config.words.view()) {
      writer.put_zigzag(word);
    }
  }
}

Status get_pool(ByteReader& reader, Model& model) {
  const std::uint64_t schema = model.config_schema.id();
  const bool fixed = model.config_schema.kind == SchemaKind::kParametric;
  const std::size_t width = model.config_schema.parameters.size();
  const std::uint64_t count = reader.get_count(fixed ? 1 + width : 1);
  model.pool.reserve(fixed ? count : 0);
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    const std::uint64_t words = reader.get_count(1);
    if (fixed && words != width) {
      return fail(ErrorCode::kCorrupt, "candidate ", i, " has ", words, " words instead of ",
                  width);
    }
    Config config{.schema = schema, .words = Config::Words(static_cast<std::size_t>(words))};
    for (std::int32_t& word : config.words) {
      const std::int64_t value = reader.get_zigzag();
      if (value < INT32_MIN || value > INT32_MAX) {
        reader.fail();
      }
      word = static_cast<std::int32_t>(value);
    }
    model.pool.push_back(std::move(config));
  }
  return {};
}

void put_portfolio(ByteWriter& writer, const Model& model) {
  writer.put_varint(model.portfolio.size());
  for (const std::uint32_t position : model.portfolio) {
    writer.put_varint(position);
  }
}

Status get_portfolio(ByteReader& reader, Model& model) {
  model.portfolio.resize(reader.get_count(1));
  for (std::uint32_t& position : model.portfolio) {
    const std::uint64_t value = reader.get_varint();
    if (value > UINT32_MAX) {
      reader.fail();
    }
    position = static_cast<std::uint32_t>(value);
  }
  return {};
}

void put_ranges(ByteWriter& writer, const Model& model) {
  writer.put_varint(model.problem_range.size());
  for (const auto& [low, high] : model.problem_range) {
    writer.put(low, high);
  }
}

Status get_ranges(ByteReader& reader, Model& model) {
  model.problem_range.resize(reader.get_count(2 * sizeof(double)));
  for (auto& [low, high] : model.problem_range) {
    low = reader.get<double>();
    high = reader.get<double>();
  }
  return {};
}

void put_card(ByteWriter& writer, const Model& model) { writer.put_string(model.card_json); }

Status get_card(ByteReader& reader, Model& model) {
  model.card_json = reader.get_string();
  return {};
}

void put_domain(ByteWriter& writer, const Model& model) {
  put_applicability_domain(writer, *model.domain);
}

Status get_domain(ByteReader& reader, Model& model) {
  FORETUNE_TRY(model.domain, get_applicability_domain(reader));
  return {};
}

void put_fast(ByteWriter& writer, const Model& model) {
  put_distilled_model(writer, *model.distilled);
}

Status get_fast(ByteReader& reader, Model& model) {
  FORETUNE_TRY(model.distilled, get_distilled_model(reader));
  return {};
}

constexpr std::array kSections{
    ModelSection{section_id("IDEN"), "identity", &put_identity, &get_identity},
    ModelSection{section_id("CONF"), "config schema", &put_schema, &get_schema, nullptr,
                 [](const Model& from, Model& to) { to.config_schema = from.config_schema; }},
    ModelSection{section_id("SPAC"), "space", &put_space, &get_space, nullptr,
                 [](const Model& from, Model& to) { to.space_text = from.space_text; }},
    ModelSection{section_id("FEAT"), "feature table", &put_features, &get_features,
                 [](const Model& model) { return !model.feature_text.empty(); },
                 [](const Model& from, Model& to) { to.feature_text = from.feature_text; }},
    ModelSection{section_id("MACH"), "machine", &put_machine, &get_machine, nullptr,
                 [](const Model& from, Model& to) { to.fingerprint = from.fingerprint; }},
    ModelSection{section_id("JOIN"), "machines", &put_machines, &get_machines,
                 [](const Model& model) { return !model.machines.empty(); },
                 [](const Model& from, Model& to) { to.machines = from.machines; }},
    // The pool needs the config schema.
    ModelSection{section_id("POOL"), "pool", &put_pool, &get_pool, nullptr,
                 [](const Model& from, Model& to) { to.pool = from.pool; }},
    ModelSection{section_id("PORT"), "portfolio", &put_portfolio, &get_portfolio, nullptr,
                 [](const Model& from, Model& to) { to.portfolio = from.portfolio; }},
    ModelSection{section_id("RANG"), "problem ranges", &put_ranges, &get_ranges, nullptr,
                 [](const Model& from, Model& to) { to.problem_range = from.problem_range; }},
    ModelSection{section_id("CARD"), "model card", &put_card, &get_card},
    ModelSection{section_id("HULL"), "applicability domain", &put_domain, &get_domain,
                 [](const Model& model) { return model.domain.has_value(); },
                 [](const Model& from, Model& to) { to.domain = from.domain; }},
    ModelSection{section_id("FAST"), "fast model", &put_fast, &get_fast,
                 [](const Model& model) { return model.distilled.has_value(); }},
};

}  // namespace

std::span<const ModelSection> model_sections() { return kSections; }

const ModelSection* find_model_section(std::uint32_t id) {
  const auto* const found = std::find_if(kSections.begin(), kSections.end(),
                                         [&](const ModelSection& known) { return known.id == id; });
  return found == kSections.end() ? nullptr : found;
}

}  // namespace foretune
