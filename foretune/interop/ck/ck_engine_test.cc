#include "foretune/interop/ck/ck_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

const FeatureTable& table_of(const char* name) { return *find_feature_table(name).value(); }

TEST(CkEngine, TablesHaveTheNamesOfTheirClasses) {
  EXPECT_EQ(ck_engine_name(table_of("gemm-ck-55")), "GemmUniversalFeatureEngine");
  EXPECT_EQ(ck_engine_name(table_of("gemm-ck-72")), "GemmUniversalFeatureEngine");
  EXPECT_EQ(ck_engine_name(table_of("grouped-conv-ck-83")), "GroupedConvFeatureEngine");
  for (const char* other : {"gemm-ck", "grouped-conv", "gemm-diode", "gemm-triton"}) {
    EXPECT_EQ(ck_engine_name(table_of(other)), "") << other;
  }
  EXPECT_EQ(ck_operation(ck_gemm_schema()), "gemm_universal");
  EXPECT_EQ(ck_operation(ck_grouped_conv_schema()), "grouped_conv");
  EXPECT_EQ(ck_operation(ConfigSchema()), "");
}

TEST(CkEngine, ArchitecturesAreThoseOfAmd) {
  EXPECT_EQ(ck_arch(known_device("mi355x").value()), "gfx950");
  EXPECT_EQ(ck_arch(known_device("mi300a").value()), "gfx942");
  EXPECT_EQ(ck_arch({.device = "some card", .isa = "gfx1201:sramecc+"}), "gfx1201");
  EXPECT_EQ(ck_arch({.device = "gfx90a"}), "gfx90a");
  EXPECT_EQ(ck_arch(h200_fingerprint()), "");
  EXPECT_EQ(ck_arch({}), "");
}

TEST(CkEngine, ItsTablesSeeWhatItTakesForTheDevice) {
  const FeatureTable& table = table_of("gemm-ck-55");
  const Fingerprint profile = known_device("ck-gfx950").value();
  EXPECT_EQ(engine_fingerprint(table, known_device("gfx950").value()), profile);
  EXPECT_EQ(engine_fingerprint(table, profile), profile);
  // With numbers of its own it stays what it is.
  Fingerprint changed = profile;
  changed.hardware.set(HardwareValue::kCores, 304);
  EXPECT_EQ(engine_fingerprint(table, changed), changed);
  const Fingerprint measured = known_device("gfx950").value();
  EXPECT_EQ(engine_fingerprint(table_of("gemm-ck"), measured), measured);
  const Fingerprint unknown{.device = "a card", .isa = "gfx1201"};
  EXPECT_EQ(engine_fingerprint(table, unknown), unknown);
  EXPECT_EQ(engine_fingerprint(table, h200_fingerprint()), h200_fingerprint());
}

// Every hw_ column of the tables is an argument of that name, or derived from some.
TEST(CkEngine, ArgumentsAreTheColumnsOfTheHardware) {
  for (const char* arch : {"ck-gfx950", "ck-gfx942", "ck-gfx90a"}) {
    const Hardware hardware = known_device(arch).value().hardware;
    const auto arguments = nlohmann::json::parse(engine_hardware_json(hardware));
    EXPECT_EQ(arguments.size(), 11U);
    const FeatureTable& table = table_of("gemm-ck-55");
    std::vector<double> row(feature_count(table, FeatureKind::kProblem));
    table.problem_row(GemmProblem::create({.m = 1, .n = 1, .k = 1}).value().to_problem(), hardware,
                      row);
    std::size_t found = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string name(table.columns()[i].name);
      if (name.starts_with("hw_") && name != "hw_total_simds") {
        EXPECT_EQ(arguments.at(name.substr(3)).get<std::int64_t>(), row[i]) << arch << ' ' << name;
        ++found;
      }
    }
    EXPECT_EQ(found, arguments.size());
    const auto back = with_engine_hardware(Hardware(), arguments.dump());
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(engine_hardware_json(*back), engine_hardware_json(hardware));
  }
}

TEST(CkEngine, ArgumentsThatAreMissingStayAndBadOnesAreNamed) {
  const Hardware before = known_device("ck-gfx950").value().hardware;
  const auto more = with_engine_hardware(before, R"({"num_cus": 304, "facts": "cores=2"})");
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(more->get(HardwareValue::kCores), 304);
  EXPECT_EQ(more->get(HardwareValue::kSharedBytesPerBlock), 65536);
  for (const char* bad :
       {R"({"num_cus": "many"})", R"({"num_cus": -1})", R"({"num_cus": 1e300})"}) {
    const auto refused = with_engine_hardware(before, bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("num_cus"));
  }
  EXPECT_FALSE(with_engine_hardware(before, "{"));
}

}  // namespace
}  // namespace foretune
