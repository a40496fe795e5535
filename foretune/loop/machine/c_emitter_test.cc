// Writes many schedules as C, compiles them with the compiler of this system, and runs them.
#include "foretune/loop/machine/c_emitter.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/loop/machine/testing/c_samples.h"

namespace foretune::loop {
namespace {

using ::testing::HasSubstr;

bool run_command(const std::string& command) {
  return std::system(command.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe): one thread
}

class CEmitterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!run_command("cc --version > /dev/null 2>&1")) {
      GTEST_SKIP() << "there is no C compiler named cc";
    }
  }
  void TearDown() override {
    if (library_ != nullptr) {
      ::dlclose(library_);
    }
  }

  // Compiles as a strict user would; false with the compiler's words as a failure.
  bool build(std::string_view source, std::string_view flags) {
    std::ofstream(folder_ / "nests.c") << source;
    const std::string folder = folder_.path().string();
    const bool built =
        run_command(concat("cc -std=c11 -O1 -Wall -Wextra -Werror ", flags, " -shared -fPIC -o ",
                           folder, "/nests.so ", folder, "/nests.c > ", folder, "/log 2>&1"));
    std::stringstream log;
    log << std::ifstream(folder_ / "log").rdbuf();
    EXPECT_TRUE(built) << log.str();
    return built;
  }
  void load() {
    // Threads of OpenMP wait in its library for more to do, so that must stay.
    library_ = ::dlopen((folder_ / "nests.so").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    ASSERT_NE(library_, nullptr) << ::dlerror();  // NOLINT(concurrency-mt-unsafe)
  }
  [[nodiscard]] CFunction find(const std::string& name) const {
    return reinterpret_cast<CFunction>(::dlsym(library_, name.c_str()));
  }

  testing_support::TemporaryFolder folder_;
  void* library_ = nullptr;
};

struct Build {
  const char* name;
  const char* flags;
  std::uint64_t seed;
  std::size_t count;
};

class RandomNests : public CEmitterTest, public testing::WithParamInterface<Build> {};

TEST_P(RandomNests, ComputeWhatTheInterpreterDoes) {
  const Build& parameters = GetParam();
  SCOPED_TRACE(concat("seed ", parameters.seed));
  const std::string probe = concat("echo 'int main(void) { return 0; }' | cc ", parameters.flags,
                                   " -x c - -o ", (folder_ / "probe").string(), " 2> /dev/null");
  if (!run_command(probe)) {
    GTEST_SKIP() << "cc does not know " << parameters.flags;
  }
  Rng rng(parameters.seed);
  std::string source;
  const auto made = random_c_samples(parameters.count, rng, source);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const std::vector<CSample>& samples = *made;
  ASSERT_TRUE(build(source, parameters.flags));
  load();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const CSample& sample = samples[i];
    const CFunction function = find(concat("nest", i));
    ASSERT_NE(function, nullptr);
    EXPECT_EQ(run_and_compare(sample, function, rng), "")
        << sample.computation.name << "\n"
        << tree_text(sample.computation, sample.nest)
        << *emit_c(sample.computation, sample.nest, "wrong");
  }
}

INSTANTIATE_TEST_SUITE_P(Flags, RandomNests,
                         testing::Values(Build{"Vectors", "-fopenmp-simd", 41, 100},
                                         Build{"Threads", "-fopenmp", 42, 25},
                                         Build{"Neither", "", 43, 25}),
                         [](const auto& parameter) { return parameter.param.name; });

Nest nest_of(const Computation& computation, std::string_view schedule) {
  const auto actions = parse_schedule(computation, schedule);
  EXPECT_TRUE(actions.has_value()) << actions.error().message;
  return *apply_all(computation, *actions);
}

// From the comment on.
std::string text_of(const Computation& computation, std::string_view schedule) {
  const auto text = emit_c(computation, nest_of(computation, schedule), "product");
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return text->substr(text->find("/*"));
}

TEST(EmitC, WritesLoopsToRead) {
  const Computation computation =
      *matmul({.m = 100, .n = 30, .k = 7, .epilogue = {.bias = true, .relu = true}});
  EXPECT_EQ(text_of(computation,
                    "split m0 16, split n0 8, move n0 1, move k0 2, block k0, vectorize n1, "
                    "pack b n0, parallelize m0"),
            R"(/* mm m=100 n=30 k=7 bias relu
 *
 * c[m][n] = sum over k of a[m][k] * b[k][n],
 *   then + bias[n],
 *   then max 0
 *
 * inputs[0]: a[m][k], size 100 x 7, strides 7, 1
 * inputs[1]: b[k][n], size 7 x 30, strides 30, 1
 * inputs[2]: bias[n], size 30, strides 1
 * output: c[m][n], size 100 x 30, strides 30, 1
 * The output must not overlap an input.
 */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif
void product(const float *const *inputs, float *output) {
  const float *const a = inputs[0];
  const float *const b = inputs[1];
  const float *const bias = inputs[2];
  float *restrict const c = output;
  #pragma omp parallel for
  for (long m0 = 0; m0 < 100; m0 += 16) {
    float *const b_pack = malloc(224 * sizeof(float));
    if (b_pack == NULL) {
      abort();
    }
    for (long n0 = 0; n0 < 30; n0 += 8) {
      for (long k0 = 0; k0 < 7; ++k0) {
        const long n1_end = foretune_shorter(8, 30 - n0);
        for (long n1 = 0; n1 < n1_end; ++n1) {
          b_pack[7 * n0 + 8 * k0 + n1] = b[30 * k0 + n0 + n1];
        }
      }
    }
    for (long n0 = 0; n0 < 30; n0 += 8) {
      {
        float acc[128] = {0};
        {
          const long m1_end = foretune_shorter(16, 100 - m0);
          #pragma GCC unroll 16
          for (long m1 = 0; m1 < m1_end; ++m1) {
            const long n1_end = foretune_shorter(8, 30 - n0);
            #pragma omp simd
            for (long n1 = 0; n1 < n1_end; ++n1) {
              acc[8 * m1 + n1] = 0.0f;
            }
          }
        }
        for (long k0 = 0; k0 < 7; ++k0) {
          const long m1_end = foretune_shorter(16, 100 - m0);
          #pragma GCC unroll 16
          for (long m1 = 0; m1 < m1_end; ++m1) {
            const long n1_end = foretune_shorter(8, 30 - n0);
            #pragma omp simd
            for (long n1 = 0; n1 < n1_end; ++n1) {
              acc[8 * m1 + n1] += a[7 * (m0 + m1) + k0] * b_pack[7 * n0 + 8 * k0 + n1];
            }
          }
        }
        {
          const long m1_end = foretune_shorter(16, 100 - m0);
          #pragma GCC unroll 16
          for (long m1 = 0; m1 < m1_end; ++m1) {
            const long n1_end = foretune_shorter(8, 30 - n0);
            #pragma omp simd
            for (long n1 = 0; n1 < n1_end; ++n1) {
              float value = acc[8 * m1 + n1];
              value += bias[n0 + n1];
              value = foretune_max(value, 0.0f);
              c[30 * (m0 + m1) + n0 + n1] = value;
            }
          }
        }
      }
    }
    free(b_pack);
  }
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
)");
}

TEST(EmitC, GuardsReadsThatMayBeInThePadding) {
  const Computation computation = *conv2d({.height = 5, .width = 4, .kernel_width = 3, .pad = 1});
  const std::string guarded =
      "(y0 - 1 >= 0 && y0 - 1 < 5 && x0 + s0 - 1 >= 0 && x0 + s0 - 1 < 4 "
      "? in[4 * y0 + x0 + s0 - 5] : 0.0f)";
  EXPECT_THAT(text_of(computation, ""),
              HasSubstr(concat("out[4 * y0 + x0] += ", guarded, " * weight[s0];")));
  const std::string packed = text_of(computation, "pack in y0");
  EXPECT_THAT(packed, HasSubstr(concat("in_pack[12 * y0 + 3 * x0 + s0] = ", guarded, ";")));
  EXPECT_THAT(packed,
              HasSubstr("out[4 * y0 + x0] += in_pack[12 * y0 + 3 * x0 + s0] * weight[s0];"));
}

TEST(EmitC, TakesNamesThatCHasOtherUsesFor) {
  Computation computation = *matmul({.m = 3, .n = 4, .k = 5});
  computation.name = "a */ b";
  computation.inputs[0].name = "int";
  computation.inputs[1].name = "m0";
  computation.output.name = "output";
  const std::string text = text_of(computation, "");
  EXPECT_THAT(text, HasSubstr("/* a *  b\n"));
  EXPECT_THAT(text, HasSubstr("output_tensor[4 * m0 + n0] += "
                              "int_tensor[5 * m0 + k0] * m0_tensor[4 * k0 + n0];"));
}

TEST(EmitC, RefusesWithAReason) {
  const auto error_of = [](const Computation& computation, std::string_view schedule,
                           std::string_view name = "product") {
    const auto text = emit_c(computation, nest_of(computation, schedule), name);
    EXPECT_FALSE(text.has_value());
    return text.has_value() ? Error{} : text.error();
  };
  const Computation large = *matmul({.m = 5000, .n = 5000, .k = 5000});
  EXPECT_EQ(error_of(large, "pack b m0"),
            (Error{ErrorCode::kUnsupported, "packing b at m0 takes a buffer of more than 64 MiB"}));
  EXPECT_EQ(
      error_of(large, "block m0"),
      (Error{ErrorCode::kUnsupported, "the register block at m0 keeps more than 16384 values"}));
  EXPECT_EQ(error_of(large, "", "while"),
            (Error{ErrorCode::kInvalidArgument, "'while' cannot name a C function"}));
  EXPECT_EQ(error_of(large, "", "2x").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of(large, "", "").code, ErrorCode::kInvalidArgument);
  Nest nest = Nest::plain(large);
  nest.loops[0].step = 2;
  EXPECT_EQ(emit_c(large, nest, "product").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretune::loop
