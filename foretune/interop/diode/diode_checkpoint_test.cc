// Checkpoints of all three classes, whole and damaged in every byte, and one that torch wrote.
#include "foretune/interop/diode/diode_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/interop/diode/testing/diode_samples.h"

namespace foretune {
namespace {

using testing::HasSubstr;
using Kind = TorchLayer::Kind;

// Describes layers as "L12-8 B R ...".
std::string outline(std::span<const TorchLayer> layers) {
  std::string out;
  for (const TorchLayer& layer : layers) {
    switch (layer.kind) {
      case Kind::kLinear:
        out += concat("L", layer.inputs, "-", layer.outputs, " ");
        break;
      case Kind::kBatchNorm:
        out += concat("B", layer.outputs, " ");
        break;
      case Kind::kRelu:
        out += "R ";
        break;
      case Kind::kBeginBlock:
        out += "( ";
        break;
      case Kind::kEndBlock:
        out += ") ";
        break;
    }
  }
  return out;
}

void expect_refused(const Result<DiodeCheckpoint>& checkpoint, ErrorCode code, const char* reason) {
  ASSERT_FALSE(checkpoint) << reason;
  EXPECT_EQ(checkpoint.error().code, code) << checkpoint.error().message;
  EXPECT_THAT(checkpoint.error().message, HasSubstr(reason));
}

std::vector<std::byte> file_of(const std::vector<std::string>& storages) {
  return sample_archive(storages, "\x80\x02.");
}

TEST(DiodeCheckpoint, ReadsAllKinds) {
  for (const SampleDiode& sample :
       {SampleDiode{.kind = DiodeKind::kV1, .widths = {8, 8, 4, 6}, .has_names = false},
        SampleDiode{.kind = DiodeKind::kBase, .widths = {9, 5, 2, 1}, .has_names = false},
        SampleDiode{.kind = DiodeKind::kBase, .widths = {7}},
        SampleDiode{.kind = DiodeKind::kBase, .widths = {7, 7}},
        SampleDiode{.kind = DiodeKind::kDeep, .widths = {6, 6, 6}},
        SampleDiode{.kind = DiodeKind::kDeep, .widths = {5, 5, 5, 5, 5, 5, 5}}}) {
    for (const bool has_optimiser : {false, true}) {
      SampleDiode saved = sample;
      saved.has_optimiser = has_optimiser;
      const auto read = parse_diode_checkpoint(sample_diode_file(saved));
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(read->kind, sample.kind);
      EXPECT_EQ(read->layers, sample_diode_layers(sample)) << outline(read->layers);
    }
  }
}

TEST(DiodeCheckpoint, SaysWhatBelongsToTheKind) {
  const auto v1 = parse_diode_checkpoint(sample_diode_file({.widths = {4, 3}}));
  ASSERT_TRUE(v1) << v1.error().message;
  EXPECT_EQ(outline(v1->layers), "L12-4 B4 R L4-3 B3 R L3-1 ");
  EXPECT_TRUE(v1->has_least);
  EXPECT_FLOAT_EQ(std::exp(v1->least), 0.00541F);
  EXPECT_EQ(v1->feature_table, "gemm-diode-v1");
  const auto base =
      parse_diode_checkpoint(sample_diode_file({.kind = DiodeKind::kBase, .widths = {4, 3}}));
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(outline(base->layers), "L36-4 R B4 L4-3 R B3 L3-1 ");
  EXPECT_FALSE(base->has_least);
  EXPECT_EQ(base->feature_table, "gemm-diode");
  const auto deep =
      parse_diode_checkpoint(sample_diode_file({.kind = DiodeKind::kDeep, .widths = {2, 2, 2}}));
  ASSERT_TRUE(deep) << deep.error().message;
  EXPECT_EQ(outline(deep->layers), "L36-2 R B2 ( L2-2 R B2 L2-2 B2 ) R L2-1 ");
  EXPECT_FALSE(deep->has_least);
  for (const DiodeKind kind : {DiodeKind::kV1, DiodeKind::kBase, DiodeKind::kDeep}) {
    EXPECT_EQ(parse_diode_kind(to_string(kind)).value(), kind);
  }
  EXPECT_EQ(parse_diode_kind("v2").error().code, ErrorCode::kInvalidArgument);
}

TEST(DiodeCheckpoint, EqualWidthsNeedNamesOrTheKind) {
  SampleDiode sample{.kind = DiodeKind::kBase, .widths = {6, 6, 6}};
  EXPECT_EQ(parse_diode_checkpoint(sample_diode_file(sample)).value().kind, DiodeKind::kBase);
  sample.has_names = false;
  const auto file = sample_diode_file(sample);
  expect_refused(parse_diode_checkpoint(file), ErrorCode::kInvalidArgument, "say which");
  EXPECT_EQ(outline(parse_diode_checkpoint(file, DiodeKind::kBase).value().layers),
            "L36-6 R B6 L6-6 R B6 L6-6 R B6 L6-1 ");
  EXPECT_EQ(outline(parse_diode_checkpoint(file, DiodeKind::kDeep).value().layers),
            "L36-6 R B6 ( L6-6 R B6 L6-6 B6 ) R L6-1 ");
  expect_refused(parse_diode_checkpoint(file, DiodeKind::kV1), ErrorCode::kMismatch,
                 "36 inputs and 3 hidden layers is no v1 model");
  sample.widths = {6, 6};
  expect_refused(parse_diode_checkpoint(sample_diode_file(sample), DiodeKind::kDeep),
                 ErrorCode::kMismatch, "no deep model");
}

TEST(DiodeCheckpoint, SaysWhatDoesNotFit) {
  const auto storages = sample_storages(sample_diode_layers({.widths = {4, 3}}));
  const auto refused = [&](std::size_t index, std::string bytes, ErrorCode code,
                           const char* reason) {
    auto changed = storages;
    changed[index] = std::move(bytes);
    expect_refused(parse_diode_checkpoint(file_of(changed)), code, reason);
  };
  const auto unsupported = ErrorCode::kUnsupported;
  refused(0, std::string(13 * 16, '\0'), unsupported, "takes 13 numbers; those of torch-diode");
  refused(0, "", unsupported, "no linear layer of 32-bit floats begins here (tensor 0 of 16)");
  refused(1, std::string(6, '\0'), unsupported, "no linear layer of 32-bit floats");
  refused(7, std::string(5 * 12, '\0'), unsupported, "layer 1 takes 5 numbers and 4 come");
  refused(14, std::string(3 * 8, '\0'), unsupported, "layer 2 takes 6 numbers and 3 come");
  refused(6, std::string(4, '\0'), unsupported, "no layer of one output ends it");
  refused(6, counter_bytes(-1), ErrorCode::kCorrupt, "counts -1 batches");
  refused(5, bytes_of(std::vector<float>{1, 1, -1, 1}), ErrorCode::kCorrupt,
          "tensor 5 of the checkpoint holds a variance below 0");
  refused(3, bytes_of(std::vector<float>{1, std::numeric_limits<float>::infinity(), 1, 1}),
          ErrorCode::kCorrupt, "tensor 3 of the checkpoint holds a number that is not finite");
  refused(0, bytes_of(std::vector<float>(48, std::nanf(""))), ErrorCode::kCorrupt, "not finite");
  refused(1, std::string(4 * 4097, '\0'), unsupported, "no linear layer");
  const std::vector<std::string> head(storages.end() - 2, storages.end());
  expect_refused(parse_diode_checkpoint(file_of(head)), unsupported, "takes 3 numbers");
  expect_refused(parse_diode_checkpoint(file_of({std::string(48, '\0'), std::string(4, '\0')})),
                 unsupported, "no hidden layer");
  expect_refused(parse_diode_checkpoint(file_of({})), unsupported, "(tensor 0 of 0)");
  // Half precision: a layer has half as many outputs as the next one has inputs.
  auto half = storages;
  for (std::string& storage : half) {
    storage.resize(storage.size() == 8 ? 8 : storage.size() / 2);
  }
  expect_refused(parse_diode_checkpoint(file_of(half)), unsupported, "tensors are not those");
}

TEST(DiodeCheckpoint, RefusesOtherArchives) {
  const auto refused = [](const std::vector<formats::SampleEntry>& entries, ErrorCode code,
                          const char* reason) {
    expect_refused(parse_diode_checkpoint(formats::sample_zip(entries)), code, reason);
  };
  refused({{"readme.txt", "text"}}, ErrorCode::kUnsupported, "no checkpoint of torch.save()");
  refused({{"a/b/data.pkl", "."}}, ErrorCode::kUnsupported, "no checkpoint of torch.save()");
  refused({{"m/data.pkl", "."}, {"m/byteorder", "big"}}, ErrorCode::kUnsupported,
          "not little-endian");
  refused({{"m/data.pkl", "."}, {"m/data/1", "1234"}}, ErrorCode::kCorrupt, "tensor 0 is missing");
  refused({{"m/data.pkl", "."}, {"m/data/00", "1234"}}, ErrorCode::kUnsupported,
          "unknown part 'm/data/00'");
  refused({{"m/data.pkl", "."}, {"m/data/x", "1234"}}, ErrorCode::kUnsupported, "unknown part");
  refused({{"m/data.pkl", "."}, {"m/data/", "1234"}}, ErrorCode::kUnsupported, "unknown part");
  expect_refused(parse_diode_checkpoint({}), ErrorCode::kCorrupt, "no zip archive");
}

TEST(DiodeCheckpoint, NoDamageGoesUnnoticed) {
  const auto file = sample_diode_file({.kind = DiodeKind::kDeep, .widths = {2, 2, 2}});
  const DiodeCheckpoint whole = parse_diode_checkpoint(file).value();
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const unsigned flip : {1U, 0x80U, 0xffU}) {
      auto damaged = file;
      damaged[i] ^= static_cast<std::byte>(flip);
      const auto read = parse_diode_checkpoint(damaged);
      ASSERT_TRUE(!read || *read == whole) << "byte " << i;
    }
  }
}

// Returns the prediction of a row, computed like the class in Python.
double prediction(const DiodeCheckpoint& checkpoint, std::span<const double> row) {
  const double output = evaluate_layers(checkpoint.layers, row).front();
  const auto least = static_cast<double>(checkpoint.least);
  return checkpoint.has_least ? std::log(std::exp(output) + std::exp(least)) : output;
}

// Written by torch, with its predictions (testdata/README.md).
TEST(DiodeCheckpoint, PredictsWhatTorchPredicts) {
  const std::filesystem::path folder =
      std::filesystem::path(FORETUNE_SOURCE_DIR) / "foretune/interop/diode/testdata";
  for (const char* name : {"diode_v1", "diode_deep"}) {
    SCOPED_TRACE(name);
    const auto checkpoint = read_diode_checkpoint(folder / concat(name, ".pt"));
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    ASSERT_TRUE(fold_layers(checkpoint->layers));
    std::ifstream file(folder / concat(name, ".csv"));
    std::size_t lines = 0;
    for (std::string line; std::getline(file, line); ++lines) {
      std::vector<double> numbers;
      for (const std::string_view number : split(line, ',')) {
        numbers.push_back(std::stod(std::string(number)));
      }
      ASSERT_EQ(numbers.size(), checkpoint->layers.front().inputs + 1U);
      EXPECT_NEAR(prediction(*checkpoint, std::span(numbers).first(numbers.size() - 1)),
                  numbers.back(), 1e-5);
    }
    EXPECT_EQ(lines, 8U);
  }
}

TEST(DiodeCheckpoint, ErrorsNameTheFile) {
  testing_support::TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "model.pt", file_of({})));
  EXPECT_THAT(read_diode_checkpoint(folder / "model.pt").error().message, HasSubstr("model.pt: "));
  EXPECT_EQ(read_diode_checkpoint(folder / "none.pt").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace foretune
