// Writes the seeds of the fuzz target for torch-diode's checkpoints.
//   build/dev/fuzz/diode_seeds fuzz/corpus/diode_checkpoint
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/interop/diode/testing/diode_samples.h"

namespace foretune {
namespace {

// Few numbers, so that a changed byte often matters.
std::vector<std::pair<std::string, std::vector<std::byte>>> seeds() {
  const SampleDiode v1{.kind = DiodeKind::kV1, .widths = {2, 1}};
  const SampleDiode base{.kind = DiodeKind::kBase, .widths = {2, 1}, .has_optimiser = true};
  const SampleDiode deep{.kind = DiodeKind::kDeep, .widths = {2, 2, 2}};
  const SampleDiode nameless{.kind = DiodeKind::kDeep, .widths = {1, 1, 1}, .has_names = false};
  const std::vector<formats::SampleEntry> entries{{"a/data.pkl", "."}, {"a/data/0", "1234"}};
  std::vector<std::byte> torn = sample_diode_file(v1);
  torn.erase(torn.end() - 10, torn.end());
  return {{"v1.pt", sample_diode_file(v1)},
          {"base_optimiser.pt", sample_diode_file(base)},
          {"deep.pt", sample_diode_file(deep)},
          {"nameless.pt", sample_diode_file(nameless)},
          {"torn.pt", torn},
          {"plain.zip", formats::sample_zip(entries, {.as_torch = false, .comment = "comment"})},
          {"compressed.zip", formats::sample_zip(entries, {.method = 8})},
          {"encrypted.zip", formats::sample_zip(entries, {.flags = 1})},
          {"empty.zip", formats::sample_zip({}, {.as_torch = false})}};
}

Status write_seeds(const std::filesystem::path& folder) {
  for (const auto& [name, bytes] : seeds()) {
    FORETUNE_TRY_STATUS(write_file_atomically(folder / name, bytes));
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: diode_seeds FOLDER\n", stderr);
    return 2;
  }
  if (const foretune::Status status = foretune::write_seeds(argv[1]); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
