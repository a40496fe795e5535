#include "foretune/interop/ck/ck_kernels.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::string_view kGemmPrefix = "gemm_universal";
constexpr std::string_view kPreshufflePrefix = "gemm_preshuffle";
constexpr std::string_view kStreamkPrefix = "gemm_streamk";
constexpr std::string_view kPlainPrefix = "gemm";
constexpr std::string_view kConvPrefix = "grouped_conv";
constexpr std::string_view kProgramPrefix = "benchmark_";
// The largest possible tile, warp count or vector width. A name with a larger one is damaged.
constexpr std::int32_t kMaxSize = 1 << 20;

const std::vector<std::string>& pipelines() {
  static const std::vector<std::string> labels{"compv3",       "compv4",   "compv5", "mem",
                                               "preshufflev2", "basic_v1", "compv6"};
  return labels;
}
const std::vector<std::string>& schedulers() {
  static const std::vector<std::string> labels{"intrawave", "interwave"};
  return labels;
}
const std::vector<std::string>& epilogues() {
  static const std::vector<std::string> labels{"default", "cshuffle"};
  return labels;
}
const std::vector<std::string>& reductions() {
  static const std::vector<std::string> labels{"atomic", "linear", "tree", "reduction"};
  return labels;
}
const std::vector<std::string>& wave_modes() {
  static const std::vector<std::string> labels{"none", "intrawave", "interwave"};
  return labels;
}
const std::vector<std::string>& layouts() {
  static const std::vector<std::string> labels(gemm_layout_labels().begin(),
                                               gemm_layout_labels().end());
  return labels;
}
const std::vector<std::string>& booleans() {
  static const std::vector<std::string> labels{"False", "True"};
  return labels;
}
const std::vector<std::string>& variants() {
  static const std::vector<std::string> labels{"forward", "bwd_data", "bwd_weight"};
  return labels;
}

constexpr std::array<std::pair<std::string_view, DataType>, 6> kDtypes{{{"fp32", DataType::kF32},
                                                                        {"fp16", DataType::kF16},
                                                                        {"bf16", DataType::kBf16},
                                                                        {"fp8", DataType::kF8e4m3},
                                                                        {"bf8", DataType::kF8e5m2},
                                                                        {"int8", DataType::kI8}}};

const std::vector<std::string>& dtypes() {
  static const std::vector<std::string> labels = [] {
    std::vector<std::string> names;
    for (const auto& [name, type] : kDtypes) {
      names.emplace_back(name);
    }
    return names;
  }();
  return labels;
}

// Parses a number as in the names: digits, no leading zero.
std::optional<std::int32_t> size_of(std::string_view text, std::int32_t minimum) {
  const bool digits =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto value = digits ? parse_int(text) : std::nullopt;
  if (!value || *value < minimum || *value > kMaxSize || (text.size() > 1 && text[0] == '0')) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*value);
}

// Splits a name from the left. '_' joins the parts, but labels may contain it, too.
class NameReader {
 public:
  explicit NameReader(std::string_view name) : name_(name), rest_(name) {
    if (rest_.substr(0, kProgramPrefix.size()) == kProgramPrefix) {
      rest_.remove_prefix(kProgramPrefix.size());
    }
  }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  Status take_prefix(std::string_view prefix) {
    if (!take_word(prefix)) {
      return broken(concat("it does not begin with ", prefix, "_"));
    }
    return {};
  }

  // Returns true when the next part is one of the words, which stays.
  [[nodiscard]] bool begins_with(const std::vector<std::string>& words) const {
    return std::find(words.begin(), words.end(), next()) != words.end();
  }

  // Consumes the next part if it is `word`; returns whether it was.
  bool take_word(std::string_view word) {
    if (rest_.substr(0, word.size()) != word ||
        (rest_.size() > word.size() && rest_[word.size()] != '_')) {
      return false;
    }
    rest_.remove_prefix(std::min(word.size() + 1, rest_.size()));
    // A '_' at the very end joins nothing.
    dangling_ = rest_.empty() && name_.back() == '_';
    return true;
  }

  Result<std::int32_t> take_label(std::string_view what, const std::vector<std::string>& labels) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (take_word(labels[i])) {
        return static_cast<std::int32_t>(i);
      }
    }
    return broken(concat(quoted(next(), 40), " is not ", what, " (", join(labels, ", "), ")"));
  }

  // Reads sizes of at least 1: "128x64x32".
  Status take_sizes(std::string_view what, std::span<std::int32_t> out) {
    const std::string_view part = next();
    const std::vector<std::string_view> pieces = split(part, 'x');
    bool right = pieces.size() == out.size();
    for (std::size_t i = 0; right && i < out.size(); ++i) {
      const auto size = size_of(pieces[i], 1);
      right = size.has_value();
      out[i] = size.value_or(0);
    }
    if (!right || !take_word(part)) {
      return broken(concat(quoted(part, 40), " is not ", what, ", three sizes as in 128x64x32"));
    }
    return {};
  }

  // Reads a number that directly follows `prefix`.
  Result<std::int32_t> take_number(std::string_view what, std::string_view prefix) {
    const std::string_view part = next();
    const auto size = part.substr(0, prefix.size()) == prefix
                          ? size_of(part.substr(prefix.size()), 0)
                          : std::nullopt;
    if (!size || !take_word(part)) {
      return broken(concat(quoted(part, 40), " is not ", what, " (", prefix, " and a number)"));
    }
    return *size;
  }

  Status finish() const {
    if (!rest_.empty() || dangling_) {
      return broken(concat("it goes on after its last part with ", quoted(rest_, 40)));
    }
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> broken(const std::string& why) const {
    return fail(ErrorCode::kInvalidArgument, "a kernel's name: ", why);
  }

 private:
  [[nodiscard]] std::string_view next() const { return rest_.substr(0, rest_.find('_')); }

  std::string_view name_;
  std::string_view rest_;
  bool dangling_ = false;
};

Config empty_config(const ConfigSchema& schema) {
  return {.schema = schema.id(), .words = Config::Words(schema.parameters.size())};
}

constexpr std::size_t at(CkGemmParameter parameter) { return static_cast<std::size_t>(parameter); }
constexpr std::size_t at(CkConvParameter parameter) { return static_cast<std::size_t>(parameter); }

// True when a name can hold the value: a label's number, or a size from `minimum`.
bool is_word_of(const Parameter& parameter, std::int32_t word, std::int32_t minimum) {
  return parameter.labels.empty()
             ? word >= minimum && word <= kMaxSize
             : word >= 0 && static_cast<std::size_t>(word) < parameter.labels.size();
}

Status check_shape(const ConfigSchema& schema, const Config& config) {
  if (config.schema != schema.id() || config.words.size() != schema.parameters.size()) {
    return fail(ErrorCode::kInvalidArgument, "the config is none of ", schema.name);
  }
  return {};
}

Status check_word(const ConfigSchema& schema, const Config& config, std::size_t index,
                  std::int32_t minimum, std::int32_t maximum) {
  const Parameter& parameter = schema.parameters[index];
  const std::int32_t word = config.words[index];
  if (!is_word_of(parameter, word, minimum) || (parameter.labels.empty() && word > maximum)) {
    return fail(ErrorCode::kInvalidArgument, "no ", schema.name, " kernel has ", parameter.name,
                "=", word);
  }
  return {};
}

Status check_dtype(DataType type) {
  if (ck_dtype_name(type).empty()) {
    return fail(ErrorCode::kInvalidArgument, "CK Tile has no name for the data type ",
                to_string(type));
  }
  return {};
}

std::string sizes_text(const Config& config, std::size_t first) {
  return concat(config.words[first], "x", config.words[first + 1], "x", config.words[first + 2]);
}

}  // namespace

const ConfigSchema& ck_gemm_schema() {
  static const ConfigSchema schema{.name = "ck-gemm",
                                   .version = 1,
                                   .kind = SchemaKind::kParametric,
                                   .parameters = {{"tile_m", {}},
                                                  {"tile_n", {}},
                                                  {"tile_k", {}},
                                                  {"warp_m", {}},
                                                  {"warp_n", {}},
                                                  {"warp_k", {}},
                                                  {"warp_tile_m", {}},
                                                  {"warp_tile_n", {}},
                                                  {"warp_tile_k", {}},
                                                  {"pipeline", pipelines()},
                                                  {"scheduler", schedulers()},
                                                  {"epilogue", epilogues()},
                                                  {"pad_m", {}},
                                                  {"pad_n", {}},
                                                  {"pad_k", {}},
                                                  {"persistent", {}},
                                                  {"split_k", {}},
                                                  {"vec_a", {}},
                                                  {"vec_b", {}},
                                                  {"vec_c", {}}}};
  return schema;
}

const ConfigSchema& ck_gemm_streamk_schema() {
  static const ConfigSchema schema = [] {
    ConfigSchema out = ck_gemm_schema();
    out.name = "ck-gemm-streamk";
    out.parameters.push_back({"reduction", reductions()});
    return out;
  }();
  return schema;
}

const ConfigSchema& ck_grouped_conv_schema() {
  static const ConfigSchema schema{.name = "ck-grouped-conv",
                                   .version = 1,
                                   .kind = SchemaKind::kParametric,
                                   .parameters = {{"tile_m", {}},
                                                  {"tile_n", {}},
                                                  {"tile_k", {}},
                                                  {"pipeline", pipelines()},
                                                  {"wave_mode", wave_modes()},
                                                  {"dsb", {}},
                                                  {"si", {}}}};
  return schema;
}

std::string_view to_string(CkConvVariant variant) {
  return variants()[static_cast<std::size_t>(variant)];
}

std::string_view ck_dtype_name(DataType type) {
  for (const auto& [name, known] : kDtypes) {
    if (known == type) {
      return name;
    }
  }
  return {};
}

Result<DataType> parse_ck_dtype(std::string_view name) {
  for (const auto& [known, type] : kDtypes) {
    if (known == name) {
      return type;
    }
  }
  return fail(ErrorCode::kInvalidArgument, quoted(name, 40), " is not a data type of CK Tile (",
              join(dtypes(), ", "), ")");
}

Result<CkGemmKernel> parse_ck_gemm_name(std::string_view name) {
  NameReader reader(name);
  const bool is_streamk = reader.take_word(kStreamkPrefix);
  const bool is_preshuffle = !is_streamk && reader.take_word(kPreshufflePrefix);
  if (!is_streamk && !is_preshuffle && !reader.take_word(kGemmPrefix) &&
      !reader.take_word(kPlainPrefix) && !reader.begins_with(dtypes())) {
    return reader.broken(concat("it does not begin with ", kGemmPrefix, "_"));
  }
  FORETUNE_TRY(const std::int32_t dtype, reader.take_label("a data type", dtypes()));
  FORETUNE_TRY(const std::int32_t layout, reader.take_label("a layout", layouts()));
  CkGemmKernel kernel{
      .dtype = kDtypes.at(static_cast<std::size_t>(dtype)).second,
      .layout = static_cast<GemmLayout>(layout),
      .config = empty_config(is_streamk ? ck_gemm_streamk_schema() : ck_gemm_schema())};
  Config::Words& words = kernel.config.words;
  const auto word = [&](CkGemmParameter parameter) -> std::int32_t& {
    return words[at(parameter)];
  };
  FORETUNE_TRY(word(CkGemmParameter::kPipeline), reader.take_label("a pipeline", pipelines()));
  FORETUNE_TRY(word(CkGemmParameter::kEpilogue), reader.take_label("an epilogue", epilogues()));
  FORETUNE_TRY(word(CkGemmParameter::kScheduler), reader.take_label("a scheduler", schedulers()));
  if (is_streamk) {
    FORETUNE_TRY(word(CkGemmParameter::kReduction), reader.take_label("a reduction", reductions()));
  }
  if (is_preshuffle &&
      word(CkGemmParameter::kPipeline) != static_cast<std::int32_t>(CkPipeline::kPreshuffleV2)) {
    return reader.broken("a preshuffle kernel has the pipeline preshufflev2");
  }
  FORETUNE_TRY(word(CkGemmParameter::kPadM), reader.take_label("pad_m", booleans()));
  FORETUNE_TRY(word(CkGemmParameter::kPadN), reader.take_label("pad_n", booleans()));
  FORETUNE_TRY(word(CkGemmParameter::kPadK), reader.take_label("pad_k", booleans()));
  FORETUNE_TRY(word(CkGemmParameter::kPersistent), reader.take_label("persistent", booleans()));
  const std::span<std::int32_t> all(&words[0], words.size());
  FORETUNE_TRY_STATUS(reader.take_sizes("the block's tile", all.subspan(0, 3)));
  FORETUNE_TRY_STATUS(reader.take_sizes("the warps of a block", all.subspan(3, 3)));
  FORETUNE_TRY_STATUS(reader.take_sizes("the warp's tile", all.subspan(6, 3)));
  word(CkGemmParameter::kSplitK) = 1;
  if (!reader.at_end()) {
    FORETUNE_TRY(word(CkGemmParameter::kVecA), reader.take_number("a's vector width", "vec"));
    FORETUNE_TRY(word(CkGemmParameter::kVecB), reader.take_number("b's vector width", ""));
    FORETUNE_TRY(word(CkGemmParameter::kVecC), reader.take_number("c's vector width", ""));
  }
  FORETUNE_TRY_STATUS(reader.finish());
  return kernel;
}

Result<CkConvKernel> parse_ck_conv_name(std::string_view name) {
  NameReader reader(name);
  FORETUNE_TRY_STATUS(reader.take_prefix(kConvPrefix));
  FORETUNE_TRY(const std::int32_t variant, reader.take_label("a variant", variants()));
  FORETUNE_TRY(const std::int32_t dtype, reader.take_label("a data type", dtypes()));
  static const std::vector<std::string> dims{"1d", "2d", "3d"};
  FORETUNE_TRY(const std::int32_t spatial, reader.take_label("a number of dimensions", dims));
  CkConvKernel kernel{.variant = static_cast<CkConvVariant>(variant),
                      .dtype = kDtypes.at(static_cast<std::size_t>(dtype)).second,
                      .spatial_dims = spatial + 1,
                      .config = empty_config(ck_grouped_conv_schema())};
  Config::Words& words = kernel.config.words;
  FORETUNE_TRY_STATUS(reader.take_sizes("the block's tile", std::span<std::int32_t>(&words[0], 3)));
  FORETUNE_TRY(words[at(CkConvParameter::kPipeline)], reader.take_label("a pipeline", pipelines()));
  for (std::size_t mode = 1; mode < wave_modes().size(); ++mode) {
    if (words[at(CkConvParameter::kWaveMode)] == 0 && reader.take_word(wave_modes()[mode])) {
      words[at(CkConvParameter::kWaveMode)] = static_cast<std::int32_t>(mode);
    }
  }
  words[at(CkConvParameter::kDsb)] = reader.take_word("dsb") ? 1 : 0;
  words[at(CkConvParameter::kSi)] = reader.take_word("si") ? 1 : 0;
  FORETUNE_TRY_STATUS(reader.finish());
  return kernel;
}

Result<CkKernel> parse_ck_kernel(const ConfigSchema& schema, std::string_view name) {
  const auto named = [&](const Error& error) {
    return fail_because(error, "kernel '", name.substr(0, 200), "'");
  };
  if (schema == ck_gemm_schema() || schema == ck_gemm_streamk_schema()) {
    auto gemm = parse_ck_gemm_name(name);
    if (!gemm) {
      return named(gemm.error());
    }
    if (gemm->config.schema != schema.id()) {
      return fail(ErrorCode::kMismatch, "kernel '", name.substr(0, 200), "' is none of ",
                  schema.name);
    }
    return CkKernel{.dtype = gemm->dtype,
                    .layout = gemm->layout,
                    .variant = {},
                    .config = std::move(gemm->config)};
  }
  if (schema == ck_grouped_conv_schema()) {
    auto conv = parse_ck_conv_name(name);
    return conv ? Result<CkKernel>(CkKernel{.dtype = conv->dtype,
                                            .layout = {},
                                            .variant = conv->variant,
                                            .config = std::move(conv->config)})
                : named(conv.error());
  }
  return fail(ErrorCode::kUnsupported, "composable_kernel has no names for configs of ",
              schema.name);
}

Result<std::string> ck_gemm_identifier(const CkGemmKernel& kernel) {
  const Config& config = kernel.config;
  const bool is_streamk = config.schema == ck_gemm_streamk_schema().id();
  const ConfigSchema& schema = is_streamk ? ck_gemm_streamk_schema() : ck_gemm_schema();
  FORETUNE_TRY_STATUS(check_dtype(kernel.dtype));
  FORETUNE_TRY_STATUS(check_shape(schema, config));
  for (std::size_t i = 0; i < config.words.size(); ++i) {
    const bool is_flag = i >= at(CkGemmParameter::kPadM) && i <= at(CkGemmParameter::kPersistent);
    const bool may_be_zero = is_flag || i >= at(CkGemmParameter::kVecA);
    FORETUNE_TRY_STATUS(check_word(schema, config, i, may_be_zero ? 0 : 1, is_flag ? 1 : kMaxSize));
  }
  const auto label = [&](CkGemmParameter parameter) -> const std::string& {
    return schema.parameters[at(parameter)]
        .labels[static_cast<std::size_t>(config.words[at(parameter)])];
  };
  std::string out =
      concat(ck_dtype_name(kernel.dtype), "_", to_string(kernel.layout), "_",
             label(CkGemmParameter::kPipeline), "_", label(CkGemmParameter::kEpilogue), "_",
             label(CkGemmParameter::kScheduler));
  if (is_streamk) {
    out += concat("_", label(CkGemmParameter::kReduction));
  }
  for (std::size_t i = at(CkGemmParameter::kPadM); i <= at(CkGemmParameter::kPersistent); ++i) {
    out += concat("_", booleans()[static_cast<std::size_t>(config.words[i])]);
  }
  out += concat("_", sizes_text(config, at(CkGemmParameter::kTileM)), "_",
                sizes_text(config, at(CkGemmParameter::kWarpM)), "_",
                sizes_text(config, at(CkGemmParameter::kWarpTileM)));
  const std::size_t vec = at(CkGemmParameter::kVecA);
  if (config.words[vec] != 0 || config.words[vec + 1] != 0 || config.words[vec + 2] != 0) {
    out +=
        concat("_vec", config.words[vec], "_", config.words[vec + 1], "_", config.words[vec + 2]);
  }
  return out;
}

Result<std::string> ck_gemm_name(const CkGemmKernel& kernel) {
  FORETUNE_TRY(const std::string identifier, ck_gemm_identifier(kernel));
  const bool is_preshuffle = kernel.config.words[at(CkGemmParameter::kPipeline)] ==
                             static_cast<std::int32_t>(CkPipeline::kPreshuffleV2);
  const std::string_view prefix = kernel.config.schema == ck_gemm_streamk_schema().id()
                                      ? kStreamkPrefix
                                  : is_preshuffle ? kPreshufflePrefix
                                                  : kGemmPrefix;
  return concat(prefix, "_", identifier);
}

Result<std::string> ck_conv_name(const CkConvKernel& kernel) {
  const ConfigSchema& schema = ck_grouped_conv_schema();
  const Config& config = kernel.config;
  FORETUNE_TRY_STATUS(check_dtype(kernel.dtype));
  FORETUNE_TRY_STATUS(check_shape(schema, config));
  if (kernel.spatial_dims < 1 || kernel.spatial_dims > 3) {
    return fail(ErrorCode::kInvalidArgument, "no kernel has ", kernel.spatial_dims,
                " spatial dimensions");
  }
  for (std::size_t i = 0; i < config.words.size(); ++i) {
    const bool is_flag = i >= at(CkConvParameter::kDsb);
    FORETUNE_TRY_STATUS(check_word(schema, config, i, is_flag ? 0 : 1, is_flag ? 1 : kMaxSize));
  }
  const auto label = [&](CkConvParameter parameter) -> const std::string& {
    return schema.parameters[at(parameter)]
        .labels[static_cast<std::size_t>(config.words[at(parameter)])];
  };
  std::string out =
      concat(kConvPrefix, "_", to_string(kernel.variant), "_", ck_dtype_name(kernel.dtype), "_",
             kernel.spatial_dims, "d_", sizes_text(config, at(CkConvParameter::kTileM)), "_",
             label(CkConvParameter::kPipeline));
  if (config.words[at(CkConvParameter::kWaveMode)] != 0) {
    out += concat("_", label(CkConvParameter::kWaveMode));
  }
  out += config.words[at(CkConvParameter::kDsb)] != 0 ? "_dsb" : "";
  out += config.words[at(CkConvParameter::kSi)] != 0 ? "_si" : "";
  return out;
}

}  // namespace foretune
