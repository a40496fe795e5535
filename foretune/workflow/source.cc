#include "foretune/workflow/source.h"

#include <chrono>
#include <ctime>
#include <filesystem>

#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/version.h"

namespace foretune::workflow {
namespace {

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  char text[16];  // NOLINT(modernize-avoid-c-arrays)
  if (gmtime_r(&now, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d", &parts) == 0) {
    return {};
  }
  return text;
}

}  // namespace

std::string file_source(std::string_view kind, const std::string& path, const Digest& digest) {
  constexpr std::size_t kShown = 12;
  std::string out(kind);
  std::filesystem::path name(path);
  name = name.has_filename() ? name.filename() : name.parent_path().filename();
  out += name.empty() ? "" : concat(" ", name.string());
  return out + (digest.is_zero() ? "" : concat(" ", digest.hex().substr(0, kShown)));
}

std::string data_source(const std::string& path, const Dataset& dataset) {
  return file_source("data set", path, dataset.fingerprint());
}

std::string model_source(const std::string& path, const Model& model) {
  return concat(file_source("model", path, {}),
                model.data_fingerprint.is_zero()
                    ? ""
                    : concat(" ", file_source("of data", {}, model.data_fingerprint)));
}

std::string family_source(const FamilyArguments& family) {
  std::string out = concat("family ", family.family);
  if (!family.family_data.empty()) {
    const auto data = read_dataset(family.family_data);
    out += concat("; ", data ? data_source(family.family_data, *data)
                             : file_source("data", family.family_data, {}));
  }
  return out;
}

std::string source_line(const std::vector<std::string>& parts, const std::string& device) {
  std::string out = concat("Foretune ", kVersion);
  const auto add = [&](const std::string& part) { out += part.empty() ? "" : concat("; ", part); };
  for (const std::string& part : parts) {
    add(part);
  }
  add(device);
  add(today());
  return out;
}

}  // namespace foretune::workflow
