#include "foretune/graph/task.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/graph/network_file.h"

namespace foretune::graph {

namespace {

constexpr std::array kTaskMagic{std::byte{'F'}, std::byte{'T'}, std::byte{'T'}, std::byte{'A'},
                                std::byte{'S'}, std::byte{'K'}, std::byte{'1'}, std::byte{'\n'}};
constexpr std::uint32_t kTaskVersion = 1;

void put_images(ByteWriter& writer, const LabelledImages& images) {
  put_array(writer, images.labels);
  put_array(writer, images.pixels);
}

LabelledImages get_images(ByteReader& reader) {
  LabelledImages images;
  images.labels = get_array<std::int32_t>(reader);
  images.pixels = get_array<std::uint8_t>(reader);
  return images;
}

Status check_images(const Task& task, std::string_view which, const LabelledImages& images) {
  if (static_cast<std::int64_t>(images.pixels.size()) != images.count() * task.image_elements()) {
    return fail(ErrorCode::kInvalidArgument, "the ", which, " images have ", images.pixels.size(),
                " pixels, not ", images.count(), " times ", task.image_elements());
  }
  for (const std::int32_t label : images.labels) {
    if (label < 0 || label >= task.classes()) {
      return fail(ErrorCode::kInvalidArgument, "a label of the ", which, " images is ", label,
                  ", and there are ", task.classes(), " classes");
    }
  }
  return {};
}

}  // namespace

std::int64_t Task::image_elements() const {
  return element_count(network.tensor(network.inputs()[0]).shape);
}

std::int64_t Task::classes() const {
  return element_count(network.tensor(network.outputs()[0]).shape);
}

void Task::read_images(const LabelledImages& images, std::int64_t first, std::int64_t count,
                       std::span<float> to) const {
  const std::uint8_t* from = images.pixels.data() + first * image_elements();
  for (float& value : to.first(static_cast<std::size_t>(count * image_elements()))) {
    value = static_cast<float>(*from++) * scale + shift;
  }
}

Status check_task(const Task& task) {
  if (task.network.inputs().size() != 1) {
    return fail(ErrorCode::kInvalidArgument, "the network of a task has one input, not ",
                task.network.inputs().size());
  }
  if (task.tuning.count() == 0) {
    return fail(ErrorCode::kInvalidArgument, "a task has at least one image for tuning");
  }
  FORETUNE_TRY_STATUS(check_images(task, "tuning", task.tuning));
  return check_images(task, "test", task.test);
}

bool is_task(std::span<const std::byte> bytes) {
  return bytes.size() >= kTaskMagic.size() &&
         std::equal(kTaskMagic.begin(), kTaskMagic.end(), bytes.begin());
}

std::vector<std::byte> task_bytes(const Task& task) {
  ByteWriter body;
  const std::vector<std::byte> network_part = network_bytes(task.network);
  body.put_varint(network_part.size());
  body.put_bytes(network_part);
  body.put(task.scale, task.shift);
  put_images(body, task.tuning);
  put_images(body, task.test);
  ByteWriter file;
  file.put_bytes(kTaskMagic);
  file.put(kTaskVersion, crc32c(body.bytes()));
  file.put_bytes(body.bytes());
  return file.take();
}

Result<Task> parse_task(std::span<const std::byte> bytes) {
  if (!is_task(bytes)) {
    return fail(ErrorCode::kCorrupt, "this is no file of a network with its images");
  }
  ByteReader head(bytes.subspan(kTaskMagic.size()));
  const auto version = head.get<std::uint32_t>();
  const auto checksum = head.get<std::uint32_t>();
  if (!head.ok()) {
    return fail(ErrorCode::kCorrupt, "the file of the task is damaged");
  }
  if (version != kTaskVersion) {
    return fail(ErrorCode::kUnsupported, "the file of the task has version ", version,
                "; this program reads ", kTaskVersion);
  }
  const std::span<const std::byte> body = head.get_bytes(head.remaining());
  if (crc32c(body) != checksum) {
    return fail(ErrorCode::kCorrupt, "the checksum of the task does not match");
  }
  ByteReader reader(body);
  const std::span<const std::byte> network_part =
      reader.get_bytes(static_cast<std::size_t>(reader.get_count(1)));
  FORETUNE_TRY(Network network, parse_network(network_part));
  Task task{.network = std::move(network)};
  task.scale = reader.get<float>();
  task.shift = reader.get<float>();
  task.tuning = get_images(reader);
  task.test = get_images(reader);
  if (!reader.ok() || !reader.at_end()) {
    return fail(ErrorCode::kCorrupt, "the file of the task is damaged");
  }
  FORETUNE_TRY_STATUS(check_task(task));
  return task;
}

Result<Task> read_task(const std::filesystem::path& path) {
  FORETUNE_TRY(const MappedFile file, MappedFile::open(path));
  Result<Task> task = parse_task(file.bytes());
  if (!task) {
    return fail_because(task.error(), path.string());
  }
  return task;
}

Status write_task(const Task& task, const std::filesystem::path& path) {
  FORETUNE_TRY_STATUS(check_task(task));
  return write_file_atomically(path, task_bytes(task));
}

}  // namespace foretune::graph
