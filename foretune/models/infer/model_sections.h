// The sections of a model file: what each holds and how it is written and read. Internal to
// models/infer. Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/models/infer/model_file.h"

namespace foretune {

constexpr std::uint32_t section_id(const char (&name)[5]) {  // NOLINT(modernize-avoid-c-arrays)
  std::uint32_t id = 0;
  for (unsigned i = 0; i < 4; ++i) {
    id |= static_cast<std::uint32_t>(static_cast<unsigned char>(name[i])) << (8 * i);
  }
  return id;
}

// Written and read beside the others, because it tells how to read them.
inline constexpr std::uint32_t kColumnsId = section_id("COLS");
inline constexpr std::uint32_t kForestsId = section_id("TREE");
inline constexpr std::uint32_t kMetricsId = section_id("METR");

struct ModelSection {
  std::uint32_t id;
  std::string_view name;
  void (*put)(ByteWriter& writer, const Model& model);
  Status (*get)(ByteReader& reader, Model& model);
  // Returns true where the model has what belongs there; null for a section that every file has.
  bool (*is_present)(const Model& model) = nullptr;
  // Takes what belongs there over from another model. Only of sections that the models of several
  // metrics share when they are the same.
  void (*share)(const Model& from, Model& to) = nullptr;
};

// In the order in which they are written and read, but the forests, which are read last.
std::span<const ModelSection> model_sections();
// Nothing for an id unknown to this version.
const ModelSection* find_model_section(std::uint32_t id);

// The section of models of several metrics, which are files within the file.
void put_metric_models(ByteWriter& writer, const Model& model);
Status get_metric_models(ByteReader& reader, Model& model);

}  // namespace foretune
