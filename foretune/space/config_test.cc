#include "foretune/space/config.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/base/testing/refusals.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

ConfigSchema schema() {
  return {.name = "x",
          .version = 3,
          .kind = SchemaKind::kParametric,
          .parameters = {{"a", {}}, {"b", {"no", "yes"}}}};
}

Config config(std::int32_t a, std::int32_t b) { return {schema().id(), {a, b}}; }

TEST(ConfigSchema, IdChangesWithEverythingItNames) {
  std::set<std::uint64_t> ids{schema().id()};
  ConfigSchema other = schema();
  other.name = "y";
  ids.insert(other.id());
  other = schema();
  other.version = 4;
  ids.insert(other.id());
  other = schema();
  other.kind = SchemaKind::kSequence;
  ids.insert(other.id());
  other = schema();
  other.parameters[0].name = "c";
  ids.insert(other.id());
  other = schema();
  other.parameters[1].labels = {"yes", "no"};
  ids.insert(other.id());
  other = schema();
  other.parameters[1].labels.clear();
  ids.insert(other.id());
  // Labels become parameters, and parameters change their order.
  other = schema();
  other.parameters = {{"a", {}}, {"b", {"no"}}, {"yes", {}}};
  ids.insert(other.id());
  other = schema();
  std::swap(other.parameters[0], other.parameters[1]);
  ids.insert(other.id());
  EXPECT_EQ(ids.size(), 9U);
  EXPECT_EQ(schema().id(), schema().id());
}

// Stored in data sets and models; the values come from a separate program in another language.
TEST(ConfigSchema, IdAndHashAreGolden) {
  EXPECT_EQ(schema().id(), 13193700930610357361U);
  EXPECT_EQ(config(7, -1).hash(), 15920586510949534998U);
}

TEST(ConfigText, PrintsLabelsAndReadsThemBackInAnyOrder) {
  EXPECT_EQ(to_text(schema(), config(-5, 1)), "a=-5 b=yes");
  EXPECT_EQ(parse_config(schema(), "a=-5 b=yes").value(), config(-5, 1));
  EXPECT_EQ(parse_config(schema(), "  b=no\ta=12 ").value(), config(12, 0));
  EXPECT_EQ(parse_config(schema(), "a=2147483647 b=no").value().words[0], 2147483647);
}

TEST(ConfigText, RefusalsSayWhatIsWrong) {
  testing_support::expect_refusals(
      [](std::string_view text) { return parse_config(schema(), text); },
      {{"", "a is missing"},
       {"a=1", "b is missing"},
       {"a=1 b=no a=1", "a is given twice"},
       {"a=1 b=no c=2", "'c=2' is not a parameter of x"},
       {"a=1 b=no c=2", "it has a b"},
       {"a=1 b", "name=value"},
       {"a=1 b=maybe", "one of no yes"},
       {"a=1 b=1", "'b=1' is not a value of b"},
       {"a=x b=no", "32-bit integer"},
       {"a=2147483648 b=no", "'a=2147483648'"},
       {"a= b=no", "'a='"}});
}

TEST(ConfigText, RandomConfigsRoundTrip) {
  constexpr std::uint64_t kSeed = 6;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int trial = 0; trial < 1000; ++trial) {
    const Config drawn =
        config(static_cast<std::int32_t>(rng.next()), static_cast<std::int32_t>(rng.below(2)));
    ASSERT_EQ(parse_config(schema(), to_text(schema(), drawn)).value(), drawn);
  }
}

TEST(ConfigText, SequencesAreWordsOfAnyLength) {
  const ConfigSchema sequence{
      .name = "loop", .version = 1, .kind = SchemaKind::kSequence, .parameters = {}};
  for (const Config::Words& words : {Config::Words{}, Config::Words{3}, Config::Words{3, -16, 1, 0},
                                     Config::Words(std::size_t{100}, 7)}) {
    const Config value{sequence.id(), words};
    EXPECT_EQ(parse_config(sequence, to_text(sequence, value)).value(), value);
  }
  EXPECT_EQ(to_text(sequence, Config{sequence.id(), {3, 16, 1, 0}}), "3,16,1,0");
  EXPECT_EQ(parse_config(sequence, " 3 , 16 ").value().words, (Config::Words{3, 16}));
  for (const char* text : {"3,", ",3", "3,,4", "3;4", "x", "2147483648"}) {
    EXPECT_FALSE(parse_config(sequence, text)) << text;
  }
}

TEST(ConfigText, LongSequencesAreShownInPart) {
  const ConfigSchema sequence{
      .name = "loop", .version = 1, .kind = SchemaKind::kSequence, .parameters = {}};
  Config value{sequence.id(), {}};
  for (std::int32_t i = 0; i < 32; ++i) {
    value.words.push_back(i);
  }
  EXPECT_EQ(shown_text(sequence, value), to_text(sequence, value));
  value.words.push_back(32);
  EXPECT_EQ(shown_text(sequence, value), "0,1,2,3,4,5,6,7,8,9,10,11 ... 29,30,31,32 (33 words)");
  EXPECT_EQ(shown_text(schema(), config(3, 4)), to_text(schema(), config(3, 4)));
}

TEST(Config, EqualConfigsHashEquallyAndOthersHardlyEver) {
  std::unordered_set<Config> configs;
  std::set<std::uint64_t> hashes;
  for (std::int32_t a = -50; a < 50; ++a) {
    for (std::int32_t b = -50; b < 50; ++b) {
      configs.insert(config(a, b));
      hashes.insert(config(a, b).hash());
    }
  }
  EXPECT_EQ(configs.size(), 10000U);
  EXPECT_EQ(hashes.size(), 10000U);
  EXPECT_EQ(configs.count(config(3, 4)), 1U);
  Config other = config(3, 4);
  other.schema ^= 1;
  EXPECT_NE(other.hash(), config(3, 4).hash());
  EXPECT_NE(other, config(3, 4));
}

}  // namespace
}  // namespace foretune
