#include "foretune/space/config.h"

#include <limits>

#include "foretune/base/text.h"

namespace foretune {

std::uint64_t ConfigSchema::id() const {
  std::uint64_t hash = hash64(name, version);
  hash = hash_combine(hash, static_cast<std::uint64_t>(kind));
  for (const Parameter& parameter : parameters) {
    hash = hash64(parameter.name, hash);
    for (const std::string& label : parameter.labels) {
      hash = hash64(label, hash_combine(hash, 1));
    }
  }
  return hash;
}

std::optional<std::size_t> ConfigSchema::find(std::string_view parameter) const {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == parameter) {
      return i;
    }
  }
  return std::nullopt;
}

namespace {

constexpr std::size_t kMaxSequenceWords = 1U << 20U;

std::string word_text(const Parameter& parameter, std::int32_t word) {
  if (!parameter.labels.empty() && word >= 0 &&
      static_cast<std::size_t>(word) < parameter.labels.size()) {
    return parameter.labels[static_cast<std::size_t>(word)];
  }
  return concat(word);
}

std::optional<std::int32_t> parse_word(std::string_view text) {
  const std::optional<std::int64_t> value = parse_int(text);
  if (!value || *value < std::numeric_limits<std::int32_t>::min() ||
      *value > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*value);
}

std::optional<std::int32_t> parse_value(const Parameter& parameter, std::string_view text) {
  for (std::size_t i = 0; i < parameter.labels.size(); ++i) {
    if (parameter.labels[i] == text) {
      return static_cast<std::int32_t>(i);
    }
  }
  return parameter.labels.empty() ? parse_word(text) : std::nullopt;
}

std::string parameter_names(const ConfigSchema& schema) {
  std::string out;
  for (const Parameter& parameter : schema.parameters) {
    out += concat(out.empty() ? "" : " ", parameter.name);
  }
  return out;
}

Result<Config> parse_sequence(const ConfigSchema& schema, std::string_view text) {
  Config config{.schema = schema.id(), .words = {}};
  if (trim(text).empty()) {
    return config;
  }
  const std::vector<std::string_view> pieces = split(trim(text), ',');
  if (pieces.size() > kMaxSequenceWords) {
    return fail(ErrorCode::kInvalidArgument, "a sequence of ", pieces.size(), " words is too long");
  }
  for (const std::string_view piece : pieces) {
    const std::optional<std::int32_t> word = parse_word(trim(piece));
    if (!word) {
      return fail(ErrorCode::kInvalidArgument, quoted(piece, 40), " is not a word of a ",
                  schema.name, " config");
    }
    config.words.push_back(*word);
  }
  return config;
}

}  // namespace

std::string to_text(const ConfigSchema& schema, const Config& config) {
  std::string out;
  for (std::size_t i = 0; i < config.words.size(); ++i) {
    if (schema.kind == SchemaKind::kSequence) {
      out += concat(i == 0 ? "" : ",", config.words[i]);
    } else if (i < schema.parameters.size()) {
      out += concat(i == 0 ? "" : " ", schema.parameters[i].name, "=",
                    word_text(schema.parameters[i], config.words[i]));
    }
  }
  return out;
}

std::string shown_text(const ConfigSchema& schema, const Config& config) {
  constexpr std::size_t kFirst = 12;
  constexpr std::size_t kLast = 4;
  const std::size_t count = config.words.size();
  if (schema.kind != SchemaKind::kSequence || count <= 2 * (kFirst + kLast)) {
    return to_text(schema, config);
  }
  const std::span<const std::int32_t> words = config.words.view();
  const auto part = [&](std::span<const std::int32_t> some) {
    return to_text(schema, {.schema = config.schema, .words = Config::Words(some)});
  };
  return concat(part(words.first(kFirst)), " ... ", part(words.last(kLast)), " (", count,
                " words)");
}

Result<Config> parse_config(const ConfigSchema& schema, std::string_view text) {
  if (schema.kind == SchemaKind::kSequence) {
    return parse_sequence(schema, text);
  }
  Config config{.schema = schema.id(), .words = Config::Words(schema.parameters.size())};
  std::vector<bool> given(schema.parameters.size(), false);
  for (const std::string_view word : split_words(text)) {
    const std::size_t equals = word.find('=');
    const std::optional<std::size_t> index = schema.find(word.substr(0, equals));
    if (equals == std::string_view::npos || !index) {
      return fail(ErrorCode::kInvalidArgument, quoted(word, 40), " is not a parameter of ",
                  schema.name, " (name=value); it has ", parameter_names(schema));
    }
    const Parameter& parameter = schema.parameters[*index];
    const std::optional<std::int32_t> value = parse_value(parameter, word.substr(equals + 1));
    if (!value) {
      return fail(ErrorCode::kInvalidArgument, quoted(word, 60), " is not a value of ",
                  parameter.name,
                  parameter.labels.empty() ? ", which is a 32-bit integer" : ", which is one of ",
                  join(parameter.labels, " "));
    }
    if (given[*index]) {
      return fail(ErrorCode::kInvalidArgument, parameter.name, " is given twice");
    }
    given[*index] = true;
    config.words[*index] = *value;
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) {
      return fail(ErrorCode::kInvalidArgument, schema.name, ": ", schema.parameters[i].name,
                  " is missing");
    }
  }
  return config;
}

}  // namespace foretune
