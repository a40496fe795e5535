#include "foretune/select/answer_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "foretune/base/hash.h"
#include "foretune/base/rng.h"

namespace foretune {
namespace {

AnswerCache::Key key_for(std::uint64_t number, std::size_t size = 4) {
  AnswerCache::Key key;
  for (std::size_t i = 0; i < size; ++i) {
    key.add(number + i);
  }
  return key;
}

AnswerCache::Answer answer_for(const AnswerCache::Key& key) {
  std::uint64_t hash = key.size;
  for (std::size_t i = 0; i < key.size; ++i) {
    hash = hash_combine(hash, key.words[i]);
  }
  return {hash, mix64(hash), ~hash};
}

TEST(AnswerCache, FindsWhatWasInserted) {
  AnswerCache cache(64);
  AnswerCache::Answer answer{};
  EXPECT_FALSE(cache.find(key_for(1), answer));
  cache.insert(key_for(1), answer_for(key_for(1)));
  ASSERT_TRUE(cache.find(key_for(1), answer));
  EXPECT_EQ(answer, answer_for(key_for(1)));
  EXPECT_FALSE(cache.find(key_for(2), answer));
  EXPECT_FALSE(cache.find(key_for(1, 3), answer));  // a prefix is another key
  EXPECT_FALSE(cache.find(key_for(1, 5), answer));
}

TEST(AnswerCache, KeysWithoutWordsAreNotKept) {
  AnswerCache cache(4);
  cache.insert({}, {1, 2, 3});
  AnswerCache::Answer answer{};
  EXPECT_FALSE(cache.find({}, answer));
}

TEST(AnswerCache, TellsKeysApartWhoseHashesCollide) {
  // One set and no tag: every key looks like every other until its words are compared.
  AnswerCache cache(1, 0);
  for (std::uint64_t i = 0; i < 4; ++i) {
    cache.insert(key_for(i), answer_for(key_for(i)));
  }
  AnswerCache::Answer answer{};
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(cache.find(key_for(i), answer)) << i;
    EXPECT_EQ(answer, answer_for(key_for(i)));
  }
  EXPECT_FALSE(cache.find(key_for(4), answer));
}

TEST(AnswerCache, IsBoundedAndForgetsTheOldest) {
  AnswerCache cache(1);
  for (std::uint64_t i = 0; i < 100; ++i) {
    cache.insert(key_for(i), answer_for(key_for(i)));
  }
  AnswerCache::Answer answer{};
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(cache.find(key_for(i), answer), i >= 96) << i;
  }
}

// Few slots, many writers: every answer found must be the one of its key, never a mixture.
TEST(AnswerCache, NeverMixesAnswersUnderThreads) {
  AnswerCache cache(2, 0);
  constexpr int kThreads = 6;
  std::array<std::uint64_t, kThreads> wrong{};
  std::array<std::uint64_t, kThreads> found{};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Rng rng(static_cast<std::uint64_t>(t));
      for (int i = 0; i < 40000; ++i) {
        const AnswerCache::Key key = key_for(rng.below(16), 2 + rng.below(10));
        AnswerCache::Answer answer{};
        if (cache.find(key, answer)) {
          ++found[static_cast<std::size_t>(t)];
          wrong[static_cast<std::size_t>(t)] += answer == answer_for(key) ? 0 : 1;
        } else {
          cache.insert(key, answer_for(key));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(wrong[static_cast<std::size_t>(t)], 0U);
    EXPECT_GT(found[static_cast<std::size_t>(t)], 0U);
  }
}

}  // namespace
}  // namespace foretune
