#include "foretune/loop/machine/operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/loop/register_tiles.h"

namespace foretune::loop {
namespace {

using testing::HasSubstr;

// A compiled schedule on operands of its own.
struct Prepared {
  Prepared(const Computation& computation, const Nest& nest)
      : jit(VectorUnit::of(CpuIsa::kAvx2)),
        operands(Operands::create(computation, 1).value()),
        kernel(jit.compile(computation, nest).value()),
        workspace(kernel.make_workspace(1).value()) {}

  void run() { kernel.run(operands.inputs(), operands.output().view(), workspace); }
  [[nodiscard]] std::string wrong() { return operands.wrong_output(jit); }

  Jit jit;
  Operands operands;
  Kernel kernel;
  Kernel::Workspace workspace;
};

class OperandsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (best_cpu_isa() < CpuIsa::kAvx2) {
      GTEST_SKIP() << "this CPU runs no AVX2";
    }
  }
};

TEST_F(OperandsTest, AreRightOnlyAfterARun) {
  const Computation product = *matmul({.m = 20, .n = 30, .k = 40});
  Prepared prepared(product, Nest::plain(product));
  prepared.operands.poison();
  EXPECT_NE(prepared.wrong(), "") << "what does nothing would pass";
  prepared.run();
  EXPECT_EQ(prepared.wrong(), "");
  prepared.operands.output().data()[3] += 1;
  EXPECT_THAT(prepared.wrong(), HasSubstr("place 3 is"));
  prepared.run();
  EXPECT_EQ(prepared.wrong(), "");
}

// The value of an input's element at a point, 0 outside of it.
float element(Operands& operands, std::size_t input, const std::vector<std::int64_t>& point) {
  std::int64_t place = 0;
  return inside(operands.computation().inputs[input], point, &place)
             ? operands.input(input).data()[place]
             : 0.0F;
}

// At random places, one at a time: 1 more, one product less, never written.
void expect_errors_are_found(const Computation& computation) {
  constexpr int kPlaces = 1000;
  Prepared prepared(computation, textbook_nests(computation, VectorUnit::of(CpuIsa::kAvx2), 1)[0]);
  Operands& operands = prepared.operands;
  prepared.run();
  Rng rng(11);
  for (int i = 0; i < kPlaces; ++i) {
    float product = 0;
    std::int64_t place = 0;
    while (product == 0) {
      std::vector<std::int64_t> point;
      for (const Var& var : computation.vars) {
        point.push_back(rng.between(0, var.extent - 1));
      }
      inside(computation.output, point, &place);
      product = element(operands, 0, point) * element(operands, 1, point);
    }
    float& value = operands.output().data()[place];
    const float right = value;
    for (const float wrong : {right + 1, right - product, std::nanf("")}) {
      value = wrong;
      ASSERT_THAT(prepared.wrong(), HasSubstr(concat("place ", place, " is")))
          << "place " << place << " is " << wrong << " instead of " << right;
    }
    value = right;
  }
  EXPECT_EQ(prepared.wrong(), "");
}

TEST_F(OperandsTest, FindsAnyWrongElementOfALargeProduct) {
  expect_errors_are_found(*matmul({.m = 512, .n = 512, .k = 512}));
}

TEST_F(OperandsTest, FindsAnyWrongElementOfALargeConvolution) {
  expect_errors_are_found(*conv2d({.channels = 64,
                                   .out_channels = 64,
                                   .height = 56,
                                   .width = 56,
                                   .kernel_height = 3,
                                   .kernel_width = 3,
                                   .pad = 1}));
}

}  // namespace
}  // namespace foretune::loop
