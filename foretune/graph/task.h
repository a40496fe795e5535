// The file of a task (`.ftt`): a network together with the images that judge it. Those for tuning
// serve to choose how layers compute, those for testing to report what came of it, and nothing is
// ever chosen by them.
//
//   FORETUNE_TRY(const Task task, read_task("resnet20.ftt"));
//   task.tuning.image(5);  // its pixels
//
// Pixels are stored as bytes; a network reads `pixel * scale + shift` as f32, with channels first.
// docs/reference/file-formats/networks.md gives the bytes. Thread safety: constant once read. Cost:
// a file is copied once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::graph {

inline constexpr std::string_view kTaskExtension = ".ftt";

struct LabelledImages {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;  // one for each image

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct Task {
  Network network;  // of one input and, first among its outputs, one number for each class
  float scale = 1;  // of pixels
  float shift = 0;
  LabelledImages tuning;
  LabelledImages test;

  // Returns the elements of an image.
  [[nodiscard]] std::int64_t image_elements() const;
  // Returns the numbers of an image's first output.
  [[nodiscard]] std::int64_t classes() const;
  // Writes images [first, first + count) as the network reads them.
  void read_images(const LabelledImages& images, std::int64_t first, std::int64_t count,
                   std::span<float> to) const;
};

// Refuses a network with several inputs, images of another size than its input, and labels that are
// no class. Errors: kInvalidArgument.
Status check_task(const Task& task);

[[nodiscard]] bool is_task(std::span<const std::byte> bytes);
// Errors: kCorrupt for bytes that are damaged or were never a task, kUnsupported as
// parse_network(); kInvalidArgument as check_task().
Result<Task> parse_task(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> task_bytes(const Task& task);
// Errors: as parse_task(), and kNotFound, kIo for the file.
Result<Task> read_task(const std::filesystem::path& path);
// Replaces the file atomically. Errors: as check_task(); kIo.
Status write_task(const Task& task, const std::filesystem::path& path);

}  // namespace foretune::graph
