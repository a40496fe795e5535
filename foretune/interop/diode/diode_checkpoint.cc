#include "foretune/interop/diode/diode_checkpoint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/formats/stored_zip.h"

namespace foretune {
namespace {

using formats::StoredEntry;

using Storage = std::span<const std::byte>;

constexpr std::array<std::string_view, 3> kKinds{"v1", "base", "deep"};
constexpr std::size_t kV1Inputs = 12;
constexpr std::size_t kInputs = 36;
// The lower limit of V1's predictions in ms: the smallest time in its training data.
constexpr double kV1Overhead = 0.00541;
constexpr std::size_t kCounterBytes = 8;

// The parts of the archive that torch uses.
struct Archive {
  std::vector<Storage> storages;
  std::string_view pickle;  // never interpreted
};

std::string_view text_of(Storage bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Parses a whole number without leading zeros and without anything else: "17".
std::optional<std::size_t> number_of(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && (text.front() != '0' || text.size() == 1) ? std::optional(number)
                                                                : std::nullopt;
}

// torch.save() puts the pickle into "<name of the archive>/data.pkl", and the tensors beside it.
constexpr std::string_view kPickle = "/data.pkl";

bool is_pickle(const StoredEntry& entry) {
  return entry.name.ends_with(kPickle) &&
         entry.name.find('/') + kPickle.size() == entry.name.size();
}

Result<Archive> open_archive(std::span<const std::byte> bytes) {
  FORETUNE_TRY(const std::vector<StoredEntry> entries, formats::read_stored_zip(bytes));
  const auto pickle = std::find_if(entries.begin(), entries.end(), is_pickle);
  if (pickle == entries.end()) {
    return fail(ErrorCode::kUnsupported, "the zip archive is no checkpoint of torch.save()");
  }
  const std::string prefix(pickle->name.substr(0, pickle->name.size() - kPickle.size()));
  Archive archive{.storages = {}, .pickle = text_of(pickle->bytes)};
  std::vector<std::pair<std::size_t, Storage>> numbered;
  for (const StoredEntry& entry : entries) {
    if (entry.name == prefix + "/byteorder" && text_of(entry.bytes) != "little") {
      return fail(ErrorCode::kUnsupported, "the checkpoint's numbers are not little-endian");
    }
    if (!entry.name.starts_with(prefix + "/data/")) {
      continue;
    }
    const auto number = number_of(entry.name.substr(concat(prefix, "/data/").size()));
    if (!number) {
      return fail(ErrorCode::kUnsupported, "the checkpoint has an unknown part ",
                  quoted(entry.name, 60));
    }
    numbered.emplace_back(*number, entry.bytes);
  }
  std::sort(numbered.begin(), numbered.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < numbered.size(); ++i) {
    if (numbered[i].first != i) {
      return fail(ErrorCode::kCorrupt, "the checkpoint's tensor ", i, " is missing");
    }
    archive.storages.push_back(numbered[i].second);
  }
  return archive;
}

// One linear layer with its normalisation.
struct Step {
  TorchLayer linear;
  std::optional<TorchLayer> norm;
};

// Reads layer by layer from the storages. It knows nothing but the order and sizes of the tensors.
class StepReader {
 public:
  explicit StepReader(std::span<const Storage> storages) : storages_(storages) {}

  // Ends with the layer of one output and without normalisation.
  Result<std::vector<Step>> read() {
    std::vector<Step> steps;
    do {
      FORETUNE_TRY(Step step, read_step());
      if (!steps.empty() && step.linear.inputs != steps.back().linear.outputs) {
        return wrong(concat("layer ", steps.size(), " takes ", step.linear.inputs, " numbers and ",
                            steps.back().linear.outputs, " come"));
      }
      steps.push_back(std::move(step));
    } while (steps.back().norm && steps.size() < Network::kMaxLayers);
    if (steps.back().norm || steps.back().linear.outputs != 1) {
      return wrong("no layer of one output ends it");
    }
    return steps;
  }

 private:
  tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(ErrorCode::kUnsupported, "the checkpoint's tensors are not those of a model of ",
                "torch-diode: ", what, " (tensor ", next_, " of ", storages_.size(), ")");
  }

  [[nodiscard]] std::size_t size(std::size_t ahead) const {
    return next_ + ahead < storages_.size() ? storages_[next_ + ahead].size() : 0;
  }

  Result<std::vector<float>> floats() {
    const Storage storage = storages_[next_++];
    std::vector<float> out(storage.size() / sizeof(float));
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(out.data(), storage.data(), out.size() * sizeof(float));
    if (!all_finite(out)) {
      return fail(ErrorCode::kCorrupt, "tensor ", next_ - 1, " of the checkpoint holds a number ",
                  "that is not finite");
    }
    return out;
  }

  Result<Step> read_step() {
    const std::size_t weight = size(0);
    const std::size_t bias = size(1);
    if (weight == 0 || bias == 0 || bias % sizeof(float) != 0 || weight % bias != 0) {
      return wrong("no linear layer of 32-bit floats begins here");
    }
    const std::size_t inputs = weight / bias;
    const std::size_t outputs = bias / sizeof(float);
    if (inputs > Network::kMaxInputs || outputs > Network::kMaxWidth) {
      return wrong(concat("a layer from ", inputs, " to ", outputs, " numbers is too wide"));
    }
    Step step;
    step.linear.kind = TorchLayer::Kind::kLinear;
    step.linear.inputs = static_cast<std::uint32_t>(inputs);
    step.linear.outputs = static_cast<std::uint32_t>(outputs);
    FORETUNE_TRY(step.linear.weight, floats());
    FORETUNE_TRY(step.linear.bias, floats());
    const bool has_norm = size(0) == bias && size(1) == bias && size(2) == bias &&
                          size(3) == bias && size(4) == kCounterBytes;
    if (has_norm) {
      FORETUNE_TRY(step.norm, read_norm(step.linear.outputs));
    }
    return step;
  }

  Result<TorchLayer> read_norm(std::uint32_t width) {
    TorchLayer norm;
    norm.kind = TorchLayer::Kind::kBatchNorm;
    norm.inputs = width;
    norm.outputs = width;
    FORETUNE_TRY(norm.weight, floats());
    FORETUNE_TRY(norm.bias, floats());
    FORETUNE_TRY(norm.mean, floats());
    FORETUNE_TRY(norm.variance, floats());
    if (!std::all_of(norm.variance.begin(), norm.variance.end(), [](float x) { return x >= 0; })) {
      return fail(ErrorCode::kCorrupt, "tensor ", next_ - 1, " of the checkpoint holds a variance ",
                  "below 0");
    }
    std::int64_t batches = 0;
    std::memcpy(&batches, storages_[next_++].data(), sizeof(batches));
    if (batches < 0) {
      return fail(ErrorCode::kCorrupt, "tensor ", next_ - 1, " of the checkpoint counts ", batches,
                  " batches");
    }
    return norm;
  }

  std::span<const Storage> storages_;
  std::size_t next_ = 0;
};

// True when the layers between the first and the last can be the pairs of residual blocks.
bool can_be_deep(std::span<const Step> steps) {
  const std::size_t hidden = steps.size() - 1;
  return hidden >= 3 && hidden % 2 == 1 &&
         std::all_of(steps.begin(), steps.end() - 1,
                     [&](auto& s) { return s.linear.outputs == steps.front().linear.outputs; });
}

Result<DiodeKind> kind_of(std::span<const Step> steps, std::string_view pickle,
                          std::optional<DiodeKind> wanted) {
  const std::size_t inputs = steps.front().linear.inputs;
  if (inputs != kV1Inputs && inputs != kInputs) {
    return fail(ErrorCode::kUnsupported, "the checkpoint's model takes ", inputs,
                " numbers; those of torch-diode take ", kV1Inputs, " or ", kInputs);
  }
  if (steps.size() < 2) {
    return fail(ErrorCode::kUnsupported, "the checkpoint's model has no hidden layer");
  }
  const bool is_v1 = inputs == kV1Inputs;
  const bool is_deep_possible = can_be_deep(steps);
  if (wanted) {
    if ((*wanted == DiodeKind::kV1) != is_v1 ||
        (*wanted == DiodeKind::kDeep && !is_deep_possible)) {
      return fail(ErrorCode::kMismatch, "the checkpoint with ", inputs, " inputs and ",
                  steps.size() - 1, " hidden layers is no ", to_string(*wanted), " model");
    }
    return *wanted;
  }
  if (is_v1 || !is_deep_possible) {
    return is_v1 ? DiodeKind::kV1 : DiodeKind::kBase;
  }
  // Both classes can have these sizes, so the names of tensors decide. They are found as text.
  const bool names_deep = pickle.find("hidden_layers.0.block.0.weight") != std::string_view::npos;
  const bool names_base = pickle.find("model.0.weight") != std::string_view::npos;
  if (names_deep == names_base) {
    return fail(ErrorCode::kInvalidArgument, "the checkpoint can be a base or a deep model; say ",
                "which");
  }
  return names_deep ? DiodeKind::kDeep : DiodeKind::kBase;
}

TorchLayer marker(TorchLayer::Kind kind) {
  TorchLayer layer;
  layer.kind = kind;
  return layer;
}

std::vector<TorchLayer> layers_of(DiodeKind kind, std::vector<Step> steps) {
  std::vector<TorchLayer> layers;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    // After the first layer of a deep model, these layers begin and end the blocks.
    const bool is_hidden = i + 1 < steps.size();
    const bool begins = kind == DiodeKind::kDeep && is_hidden && i % 2 == 1;
    const bool ends = kind == DiodeKind::kDeep && is_hidden && i > 0 && i % 2 == 0;
    if (begins) {
      layers.push_back(marker(TorchLayer::Kind::kBeginBlock));
    }
    layers.push_back(std::move(steps[i].linear));
    if (!is_hidden) {
      break;
    }
    const bool norm_first = kind == DiodeKind::kV1 || ends;
    if (!norm_first) {
      layers.push_back(marker(TorchLayer::Kind::kRelu));
    }
    layers.push_back(std::move(*steps[i].norm));
    if (ends) {
      layers.push_back(marker(TorchLayer::Kind::kEndBlock));
    }
    if (norm_first) {
      layers.push_back(marker(TorchLayer::Kind::kRelu));
    }
  }
  return layers;
}

}  // namespace

std::string_view to_string(DiodeKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

Result<DiodeKind> parse_diode_kind(std::string_view text) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), text);
  if (found == kKinds.end()) {
    return fail(ErrorCode::kInvalidArgument, quoted(text, 40),
                " is no kind of torch-diode's models (known: v1, base, deep)");
  }
  return static_cast<DiodeKind>(found - kKinds.begin());
}

Result<DiodeCheckpoint> parse_diode_checkpoint(std::span<const std::byte> bytes,
                                               std::optional<DiodeKind> kind) {
  FORETUNE_TRY(const Archive archive, open_archive(bytes));
  FORETUNE_TRY(std::vector<Step> steps, StepReader(archive.storages).read());
  DiodeCheckpoint checkpoint;
  FORETUNE_TRY(checkpoint.kind, kind_of(steps, archive.pickle, kind));
  checkpoint.layers = layers_of(checkpoint.kind, std::move(steps));
  checkpoint.has_least = checkpoint.kind == DiodeKind::kV1;
  if (checkpoint.has_least) {
    checkpoint.least = static_cast<float>(std::log(kV1Overhead));
  }
  checkpoint.feature_table = checkpoint.kind == DiodeKind::kV1 ? "gemm-diode-v1" : "gemm-diode";
  return checkpoint;
}

Result<DiodeCheckpoint> read_diode_checkpoint(const std::filesystem::path& path,
                                              std::optional<DiodeKind> kind) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, read_file(path));
  auto checkpoint = parse_diode_checkpoint(bytes, kind);
  return checkpoint ? std::move(checkpoint) : fail_because(checkpoint.error(), path.string());
}

}  // namespace foretune
