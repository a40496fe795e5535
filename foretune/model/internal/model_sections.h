// The sections that every model file has, whatever the kind of model: how each is written and read.
// Internal to the module. Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"

namespace foretune {

// Written and read beside the others, because it tells how to read them.
inline constexpr std::uint32_t kColumnsId = section_id("COLS");
// The section that follows the first of the body.
inline constexpr std::uint32_t kBodyBefore = section_id("RANG");

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

// In the order in which they are written and read.
std::span<const ModelSection> model_sections();
// Nothing for an id unknown to this version.
const ModelSection* find_model_section(std::uint32_t id);
bool has_section(const ModelSection& section, const Model& model);

// Files within files: the models of several metrics share sections.
using SectionIds = std::vector<std::uint32_t>;
// Returns the model as a file without some sections.
std::vector<std::byte> file_bytes(const Model& model, const SectionIds& left_out);
// Reads such a file. The model has the sections of `taken_over` already.
Status read_file(std::span<const std::byte> bytes, const SectionIds& taken_over, Model& model);

}  // namespace foretune
