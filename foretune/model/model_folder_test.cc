#include "foretune/model/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/model/testing/model_samples.h"

namespace foretune {
namespace {

using testing::HasSubstr;

Problem product(DataType dtype) {
  return GemmProblem::create({.m = 64, .n = 64, .k = 64, .dtype = dtype})->to_problem();
}

Fingerprint cpu(const std::string& device, double vector_bytes, double cores) {
  Fingerprint out{.device = device, .isa = "fma", .system = {}, .hardware = {}};
  out.hardware.set(HardwareValue::kVectorBytes, vector_bytes);
  out.hardware.set(HardwareValue::kCores, cores);
  return out;
}

class ModelFolderTest : public testing::Test {
 protected:
  void add(const std::string& name, const Fingerprint& machine, DataType dtype = DataType::kF32,
           std::vector<Fingerprint> machines = {}) {
    Rng rng(3);
    Model model = sample_model({.candidates = 20}, rng);
    model.fingerprint = machine;
    model.machines = std::move(machines);
    const std::vector<Problem> seen(3, product(dtype));
    model.domain = ApplicabilityDomain::fit(seen);
    ASSERT_TRUE(write_model(model, folder_.path() / name));
  }
  std::string chosen(const Problem& problem, const Fingerprint& machine,
                     std::string_view family = {}) {
    const auto folder = ModelFolder::open(folder_.path());
    EXPECT_TRUE(folder) << folder.error().message;
    const auto path = folder->choose(problem, machine, family);
    return path ? path->filename().string() : path.error().message;
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(ModelFolderTest, TakesTheModelOfTheMachineThenOfTheDeviceThenOfItsClass) {
  add("a-avx2-1.ftm", cpu("Old", 32, 1));
  add("b-avx512-1.ftm", cpu("Other", 64, 1));
  add("c-avx512-2.ftm", cpu("Other", 64, 2));
  const Problem problem = product(DataType::kF32);
  EXPECT_EQ(chosen(problem, cpu("Other", 64, 1)), "b-avx512-1.ftm");
  EXPECT_EQ(chosen(problem, cpu("Other", 64, 2)), "c-avx512-2.ftm");
  EXPECT_EQ(chosen(problem, cpu("Unknown", 64, 1)), "b-avx512-1.ftm");
  EXPECT_EQ(chosen(problem, cpu("Unknown", 32, 1)), "a-avx2-1.ftm");
  add("d-own.ftm", cpu("Unknown", 64, 1));
  EXPECT_EQ(chosen(problem, cpu("Unknown", 64, 1)), "d-own.ftm");
}

TEST_F(ModelFolderTest, TakesAJointModelBehindThoseOfSimilarMachines) {
  const std::vector<Fingerprint> learned{cpu("Old", 32, 1), cpu("Other", 64, 1)};
  add("joint.ftm", learned.front(), DataType::kF32, learned);
  const Problem problem = product(DataType::kF32);
  EXPECT_EQ(chosen(problem, cpu("Other", 64, 1)), "joint.ftm");
  EXPECT_EQ(chosen(problem, cpu("Unknown", 16, 8)), "joint.ftm");
  EXPECT_THAT(chosen(problem, h200_fingerprint()), HasSubstr("joint.ftm is for Old"));
  add("similar.ftm", cpu("Similar", 64, 1));
  EXPECT_EQ(chosen(problem, cpu("Unknown", 64, 1)), "similar.ftm");
  EXPECT_EQ(chosen(problem, cpu("Other", 64, 1)), "joint.ftm");
  add("own.ftm", cpu("Other", 64, 1));
  EXPECT_EQ(chosen(problem, cpu("Other", 64, 1)), "own.ftm");
}

TEST_F(ModelFolderTest, RefusesWithTheReasonForEachModel) {
  add("bf16.ftm", cpu("This", 64, 1), DataType::kBf16);
  add("gpu.ftm", h200_fingerprint());
  add("wide.ftm", cpu("This", 64, 1));
  EXPECT_EQ(chosen(product(DataType::kBf16), cpu("This", 64, 1)), "bf16.ftm");
  EXPECT_EQ(chosen(product(DataType::kF32), h200_fingerprint()), "gpu.ftm");
  const std::string other = chosen(product(DataType::kF16), cpu("This", 64, 1));
  EXPECT_THAT(other, HasSubstr("bf16.ftm never saw dtype f16"));
  EXPECT_THAT(other, HasSubstr("wide.ftm never saw dtype f16"));
  EXPECT_THAT(chosen(product(DataType::kF32), cpu("This", 32, 1)),
              HasSubstr("wide.ftm is for This with 1 cores"));
  EXPECT_THAT(chosen(product(DataType::kF32), cpu("This", 64, 1), "cpu-gemm"),
              HasSubstr("wide.ftm is for the family sample"));
  EXPECT_EQ(chosen(product(DataType::kF32), cpu("This", 64, 1), "sample"), "wide.ftm");
}

TEST_F(ModelFolderTest, RefusesFoldersWithoutModelsAndDamagedOnes) {
  EXPECT_EQ(ModelFolder::open(folder_.path()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ModelFolder::open(folder_.path() / "none").error().code, ErrorCode::kIo);
  ASSERT_TRUE(write_text_file_atomically(folder_.path() / "notes.txt", "no model"));
  EXPECT_EQ(ModelFolder::open(folder_.path()).error().code, ErrorCode::kNotFound);
  add("good.ftm", cpu("This", 64, 1));
  auto bytes = *read_text_file(folder_.path() / "good.ftm");
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_text_file_atomically(folder_.path() / "bad.ftm", bytes));
  const auto damaged = ModelFolder::open(folder_.path());
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("bad.ftm"));
}

}  // namespace
}  // namespace foretune
