// Reads checkpoints of torch-diode's models (github.com/exclamaforte/diode, 2025), as torch.save()
// writes them: a zip archive of stored entries with the tensors' raw numbers in data/0, data/1,
// ..., in the order of the state dict. Nothing is unpickled: the tensors follow from sizes and
// order.
//
//   FORETUNE_TRY(const DiodeCheckpoint checkpoint, read_diode_checkpoint("v1_model.pt"));
//   FORETUNE_TRY(const std::vector<DenseLayer> layers, fold_layers(checkpoint.layers));
//
// A model is a list of tensors: per linear layer weight and bias, and, but for the last one, which
// has one output, the batch normalisation's gamma, beta, running mean, running variance and 64-bit
// counter of batches. The rest of a checkpoint is skipped, for instance an optimiser's state.
//
//   v1    MatmulModelV1, which Diode ships: 12 inputs, Linear-BatchNorm-ReLU, Linear(1); the
//         prediction is ln(exp(output) + 0.00541)
//   base  MatmulTimingModel: 36 inputs, Linear-ReLU-BatchNorm, Linear(1)
//   deep  DeepMatmulTimingModel: 36 inputs, Linear-ReLU-BatchNorm, residual blocks of
//         Linear-ReLU-BatchNorm-Linear-BatchNorm, Linear(1)
//
// Predictions are ln(ms).
// Thread safety: free functions without state. Cost: linear in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/network/torch_layers.h"

namespace foretune {

enum class DiodeKind : std::uint8_t { kV1, kBase, kDeep };
std::string_view to_string(DiodeKind kind);
Result<DiodeKind> parse_diode_kind(std::string_view text);

struct DiodeCheckpoint {
  DiodeKind kind = DiodeKind::kV1;
  std::vector<TorchLayer> layers;
  bool has_least = false;  // then the prediction is ln(exp(output) + exp(least))
  float least = 0;
  std::string feature_table;  // what it sees: "gemm-diode-v1", its logarithms standardised, or
                              // "gemm-diode", as it is
  bool operator==(const DiodeCheckpoint&) const = default;
};

// Detects the kind by the number of inputs, and base or deep by the widths: those of a deep model
// are equal, and the layers after the first come in pairs. A base model can have such widths, too.
// Then the names of its tensors decide, where the archive has them, or `kind`, which must fit in
// any case.
// Errors: kCorrupt for a damaged file or numbers that are not finite; kUnsupported, with the
// difference, for other archives and models; kMismatch for a model that is not of `kind`;
// kInvalidArgument where only `kind` could decide.
Result<DiodeCheckpoint> parse_diode_checkpoint(std::span<const std::byte> bytes,
                                               std::optional<DiodeKind> kind = std::nullopt);
Result<DiodeCheckpoint> read_diode_checkpoint(const std::filesystem::path& path,
                                              std::optional<DiodeKind> kind = std::nullopt);

}  // namespace foretune
