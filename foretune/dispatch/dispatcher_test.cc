#include "foretune/dispatch/dispatcher.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/forked_child.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/dispatch/default_models.h"
#include "foretune/dispatch/testing/text_provider.h"
#include "foretune/kernels/micro_kernel.h"

namespace foretune {
namespace {

// Loads the one choice of a file, and expects it to decide the problem.
void expect_loaded(Dispatcher& dispatcher, const std::filesystem::path& path,
                   const Problem& problem, const Config& config, double nanoseconds) {
  const auto loaded = dispatcher.load_choices(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(*loaded, 1U);
  const auto known = dispatcher.decision(problem);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->source, ChoiceSource::kRemembered);
  EXPECT_EQ(known->config, config);
  EXPECT_EQ(known->measured_ns, nanoseconds);
}

TEST(DispatcherTest, FollowsTheModelThenThePortfolioThenTheDefault) {
  const auto provider = std::make_shared<TextProvider>(machine());
  Dispatcher dispatcher({});
  ASSERT_TRUE(dispatcher.add(provider, shipped()));
  const auto picked = dispatcher.decision(gemm(200, 300, 100));
  ASSERT_TRUE(picked) << picked.error().message;
  EXPECT_EQ(picked->source, ChoiceSource::kModel);
  EXPECT_EQ(picked->note, "");
  EXPECT_EQ(picked->family, "cpu-gemm");
  EXPECT_LT(picked->measured_ns, 0);
  const auto turn = dispatcher.next(gemm(200, 300, 100));
  ASSERT_TRUE(turn);
  EXPECT_FALSE(turn->is_trial());
  EXPECT_EQ(parse_config(provider->family().info().config_schema, text_of(*turn)).value(),
            picked->config);

  const auto outside = dispatcher.decision(gemm(200, 300000, 100));
  ASSERT_TRUE(outside);
  EXPECT_EQ(outside->source, ChoiceSource::kPortfolio);
  EXPECT_NE(outside->note.find("outside"), std::string::npos) << outside->note;

  Dispatcher without({});
  ASSERT_TRUE(without.add(provider, std::nullopt));
  const auto textbook = without.decision(gemm(200, 300, 100));
  ASSERT_TRUE(textbook);
  EXPECT_EQ(textbook->source, ChoiceSource::kDefault);

  // When no proposed config can be made, any other config is chosen.
  for (const Config& config : provider->family().default_configs(gemm(200, 300, 100))) {
    provider->refused.insert(to_text(provider->family().info().config_schema, config));
  }
  Dispatcher left_alone({});
  ASSERT_TRUE(left_alone.add(provider, std::nullopt));
  const auto any = left_alone.decision(gemm(200, 300, 100));
  ASSERT_TRUE(any) << any.error().message;
  EXPECT_EQ(any->source, ChoiceSource::kFirstLegal);
}

TEST(DispatcherTest, EveryShippedModelDecidesOnAMachineOfItsClass) {
  for (const DefaultModel& model : default_models()) {
    if (model.family != "cpu-gemm") {
      continue;
    }
    const auto provider =
        std::make_shared<TextProvider>(machine(4 * kernel_limits(model.isa).lanes, model.threads));
    Dispatcher dispatcher({});
    ASSERT_TRUE(
        dispatcher.add(provider, default_cpu_model(model.family, model.isa, model.threads)));
    for (const Problem& problem : {gemm(200, 300, 100), gemm(1, 1000, 1000), gemm(64, 64, 64)}) {
      const auto decision = dispatcher.decision(problem);
      ASSERT_TRUE(decision) << decision.error().message;
      EXPECT_EQ(decision->source, ChoiceSource::kModel) << model.name << " " << problem.text();
      EXPECT_EQ(decision->note, "");
    }
  }
}

TEST(DispatcherTest, AModelOfAnotherMachineStillGivesWhatThisOneCanRun) {
  for (const double vector_bytes : {16.0, 32.0}) {
    const auto provider = std::make_shared<TextProvider>(machine(vector_bytes));
    Dispatcher dispatcher({});
    ASSERT_TRUE(dispatcher.add(provider, shipped()));
    const auto decision = dispatcher.decision(gemm(200, 300, 100));
    ASSERT_TRUE(decision) << decision.error().message;
    EXPECT_TRUE(provider->make_kernel(gemm(200, 300, 100), decision->config));
  }
}

TEST(DispatcherTest, SaysWhyNothingRuns) {
  Dispatcher empty({});
  EXPECT_FALSE(empty.next(gemm(4, 4, 4)));
  Dispatcher dispatcher({});
  ASSERT_TRUE(dispatcher.add(std::make_shared<TextProvider>(machine()), shipped()));
  const auto refused = dispatcher.next(gemm(4, 4, 4, DataType::kF64));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("cpu-gemm multiplies f32, bf16 and i8, not f64"),
            std::string::npos)
      << refused.error().message;
  Model foreign = shipped();
  foreign.family = "gpu-gemm";
  const Status mismatch = dispatcher.add(std::make_shared<TextProvider>(machine()), foreign);
  ASSERT_FALSE(mismatch);
  EXPECT_EQ(mismatch.error().code, ErrorCode::kMismatch);
}

// Every config has its own time; the trials must find the fastest one that they tried.
TEST(DispatcherTest, TrialsFindTheFastestAndEnd) {
  const auto provider = std::make_shared<TextProvider>(machine());
  Dispatcher dispatcher({.measure_top = 5, .measure_rounds = 3, .measure_seconds = 1});
  ASSERT_TRUE(dispatcher.add(provider, shipped()));
  const Problem problem = gemm(200, 300, 100);
  std::map<std::string, int> calls;
  std::vector<std::string> order;
  int trials = 0;
  for (int call = 0; call < 40; ++call) {
    const auto turn = dispatcher.next(problem);
    ASSERT_TRUE(turn);
    const std::string text = text_of(*turn);
    if (!turn->is_trial()) {
      EXPECT_EQ(text, order[3]);
      continue;
    }
    ++trials;
    if (calls[text]++ == 0) {
      order.push_back(text);
    }
    // The second is hopeless, the fourth is the best.
    const double ns = text == order[0]                       ? 100
                      : order.size() > 1 && text == order[1] ? 1000
                      : order.size() > 3 && text == order[3] ? 80
                                                             : 90;
    dispatcher.report(*turn, ns + call);
  }
  ASSERT_EQ(order.size(), 5U);
  EXPECT_EQ(calls[order[1]], 1);
  EXPECT_EQ(trials, 4 * 3 + 1);
  const auto decision = dispatcher.decision(problem);
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->source, ChoiceSource::kMeasured);
  EXPECT_TRUE(decision->is_settled);
  EXPECT_EQ(decision->config_text, order[3]);
  EXPECT_GE(decision->measured_ns, 80);
}

TEST(DispatcherTest, WhatIsNoTrialOrFailsDoesNotKeepTrialsFromEnding) {
  const auto provider = std::make_shared<TextProvider>(machine());
  const Problem problem = gemm(200, 300, 100);
  for (const int rounds : {0, 2}) {
    Dispatcher dispatcher({.measure_top = 2, .measure_rounds = rounds});
    ASSERT_TRUE(dispatcher.add(provider, shipped()));
    const auto kept = dispatcher.best(problem);
    ASSERT_TRUE(kept);
    EXPECT_FALSE(kept->is_trial());
    const auto failed = dispatcher.next(problem);
    ASSERT_TRUE(failed);
    EXPECT_TRUE(failed->is_trial());
    EXPECT_EQ(text_of(*failed), text_of(*kept)) << "the model's pick comes first";
    dispatcher.abandon(*failed);
    std::map<std::string, int> calls;
    for (int call = 0; call < 2 * std::max(1, rounds); ++call) {
      const auto turn = dispatcher.next(problem);
      ASSERT_TRUE(turn);
      ASSERT_TRUE(turn->is_trial());
      ++calls[text_of(*turn)];
      dispatcher.report(*turn, 100);
    }
    EXPECT_EQ(calls.size(), 2U);
    EXPECT_EQ(calls[text_of(*kept)], std::max(1, rounds));
    EXPECT_TRUE(dispatcher.decision(problem)->is_settled);
  }
}

TEST(DispatcherTest, AnAbandonedTrialLeavesABound) {
  Dispatcher dispatcher({.measure_top = 2});
  ASSERT_TRUE(dispatcher.add(std::make_shared<TextProvider>(machine()), shipped()));
  const Problem problem = gemm(200, 300, 100);
  const auto first = dispatcher.next(problem);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->at_most_ns(), std::numeric_limits<double>::infinity());
  dispatcher.abandon(*first, 500);
  dispatcher.abandon(*dispatcher.next(problem), 700);  // a longer one says nothing new
  const auto again = dispatcher.next(problem);
  EXPECT_EQ(again->kernel(), first->kernel());
  EXPECT_EQ(again->at_most_ns(), 500);
  dispatcher.report(*again, 400);
  const auto other = dispatcher.next(problem);
  EXPECT_NE(other->kernel(), first->kernel());
  EXPECT_EQ(other->at_most_ns(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(other->fastest_ns(), 400);
}

TEST(DispatcherTest, TrialsEndWhenTheirTimeIsUp) {
  Dispatcher dispatcher({.measure_top = 8, .measure_rounds = 100, .measure_seconds = 1e-3});
  ASSERT_TRUE(dispatcher.add(std::make_shared<TextProvider>(machine()), shipped()));
  int trials = 0;
  for (int call = 0; call < 100; ++call) {
    const auto turn = dispatcher.next(gemm(64, 64, 64));
    ASSERT_TRUE(turn);
    trials += turn->is_trial() ? 1 : 0;
    dispatcher.report(*turn, 2e5);
  }
  EXPECT_EQ(trials, 6);
}

TEST(DispatcherTest, RemembersAcrossProcessesOnTheSameMachineOnly) {
  const testing_support::TemporaryFolder folder;
  const auto path = folder / "choices.txt";
  const auto provider = std::make_shared<TextProvider>(machine());
  const Problem problem = gemm(200, 300, 100);
  Dispatcher first({.measure_top = 3, .measure_rounds = 1});
  ASSERT_TRUE(first.add(provider, shipped()));
  for (int call = 0; call < 3; ++call) {
    const auto turn = first.next(problem);
    ASSERT_TRUE(turn);
    first.report(*turn, 300.5 - 100 * call);
  }
  const auto measured = first.decision(problem);
  ASSERT_TRUE(measured);
  ASSERT_EQ(measured->source, ChoiceSource::kMeasured);
  ASSERT_TRUE(write_text_file_atomically(path, first.choices_text()));

  Dispatcher second({});
  ASSERT_TRUE(second.add(provider, shipped()));
  // The model decides before loading, the loaded choice afterwards.
  EXPECT_EQ(second.decision(problem)->source, ChoiceSource::kModel);
  expect_loaded(second, path, problem, measured->config, 100.5);
  // Remembered choices give the same text again.
  EXPECT_EQ(read_text_file(path).value(), second.choices_text());

  Dispatcher elsewhere({});
  ASSERT_TRUE(elsewhere.add(std::make_shared<TextProvider>(machine(32)), shipped()));
  const auto refused = elsewhere.load_choices(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
}

TEST(DispatcherTest, BadFilesOfChoicesAreRefusedWhole) {
  const testing_support::TemporaryFolder folder;
  const auto path = folder / "choices.txt";
  Dispatcher dispatcher({});
  ASSERT_TRUE(dispatcher.add(std::make_shared<TextProvider>(machine()), shipped()));
  const std::string head = dispatcher.choices_text();
  const auto load = [&](const std::string& text) {
    EXPECT_TRUE(write_text_file_atomically(path, text));
    const auto loaded = dispatcher.load_choices(path);
    return loaded ? std::string("loaded") : loaded.error().message;
  };
  EXPECT_EQ(load(head), "loaded");
  EXPECT_NE(load("").find("not a file of choices"), std::string::npos);
  EXPECT_NE(load("hello\nworld\n").find("not a file of choices"), std::string::npos);
  EXPECT_NE(load(head + "cpu-gemm\tgemm m=1\n").find("line 3"), std::string::npos);
  EXPECT_NE(load(head + "cpu-gemm\tgemm m=1 n=1 k=1\tisa=none\t5\n").find("line 3"),
            std::string::npos);
  EXPECT_NE(load(head + "cpu-gemm\tnonsense\tisa=none\t-5\n").find("line 3"), std::string::npos);
  EXPECT_EQ(load(head + "other\tnonsense\tnonsense\t5\n"), "loaded");
  EXPECT_FALSE(dispatcher.load_choices(folder / "missing"));
}

TEST(DispatcherTest, ForgetsTheOldestProblemsBeyondTheLimit) {
  const auto provider = std::make_shared<TextProvider>(machine());
  Dispatcher dispatcher({.max_problems = 3});
  ASSERT_TRUE(dispatcher.add(provider, std::nullopt));
  const auto first = dispatcher.next(gemm(8, 8, 8));
  ASSERT_TRUE(first);
  const std::weak_ptr<const void> kept = first->shared_kernel();
  for (int size = 9; size < 20; ++size) {
    ASSERT_TRUE(dispatcher.next(gemm(size, 8, 8)));
  }
  // The turn still holds the kernel, the dispatcher does not.
  EXPECT_EQ(kept.use_count(), 1);
}

// Measures a problem by trials that each take half of the time of the one before.
void measure(Dispatcher& dispatcher, const Problem& problem) {
  for (double nanoseconds = 200;; nanoseconds /= 2) {
    const auto turn = dispatcher.next(problem);
    ASSERT_TRUE(turn);
    if (!turn->is_trial()) {
      return;
    }
    dispatcher.report(*turn, nanoseconds);
  }
}

TEST(DispatcherTest, WhatWasMeasuredOutlivesTheLimitAndNewFamilies) {
  const auto provider = std::make_shared<TextProvider>(machine());
  Dispatcher dispatcher({.measure_top = 2, .measure_rounds = 1, .max_problems = 2});
  ASSERT_TRUE(dispatcher.add(provider, shipped()));
  const Problem problem = gemm(200, 300, 100);
  measure(dispatcher, problem);
  const Config config = dispatcher.decision(problem)->config;
  for (int size = 100; size < 104; ++size) {
    measure(dispatcher, gemm(size, size, size));
  }
  for (int i = 0; i < 2; ++i) {
    const auto again = dispatcher.decision(problem);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->source, ChoiceSource::kRemembered);
    EXPECT_EQ(again->config, config);
    ASSERT_TRUE(dispatcher.add(provider, std::nullopt));
  }
  EXPECT_EQ(std::ranges::count(dispatcher.choices_text(), '\n'), 2 + 5);
}

TEST(DispatcherTest, ForgetsTheOldestMeasurementsBeyondTheLimit) {
  const auto provider = std::make_shared<TextProvider>(machine());
  Dispatcher dispatcher(
      {.measure_top = 2, .measure_rounds = 1, .max_problems = 4, .max_remembered = 20});
  ASSERT_TRUE(dispatcher.add(provider, shipped()));
  const auto bytes_in_use = [] { return ::mallinfo2().uordblks; };
#ifndef FORETUNE_SANITIZED
  constexpr int kProblems = 120;
#else
  constexpr int kProblems = 40;
#endif
  std::size_t after_some = 0;
  for (int i = 0; i < kProblems; ++i) {
    measure(dispatcher, gemm(100 + i, 64, 64));
    if (i == kProblems / 3) {
      after_some = bytes_in_use();
    }
  }
  constexpr std::size_t kSlack = 4096;  // a choice takes some 400
#ifndef FORETUNE_SANITIZED
  EXPECT_LT(bytes_in_use(), after_some + kSlack);
#else
  static_cast<void>(after_some + kSlack);
#endif
  const std::string choices = dispatcher.choices_text();
  EXPECT_EQ(std::ranges::count(choices, '\n'), 2 + 20 + 4);
  for (int i = 0; i < kProblems; ++i) {
    const bool is_known = choices.find(concat(" m=", 100 + i, " ")) != std::string::npos;
    EXPECT_EQ(is_known, i >= kProblems - 24) << i;
  }
}

TEST(DispatcherTest, TakesTheLastOfMoreChoicesThanItRemembers) {
  const auto provider = std::make_shared<TextProvider>(machine());
  Dispatcher first({.measure_top = 2, .measure_rounds = 1});
  ASSERT_TRUE(first.add(provider, shipped()));
  for (int i = 0; i < 9; ++i) {
    measure(first, gemm(101 + i, 64, 64));
  }
  Dispatcher second({.measure_top = 2, .measure_rounds = 1, .max_remembered = 4});
  ASSERT_TRUE(second.add(provider, shipped()));
  const auto taken = second.take_choices(first.choices_text());
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(*taken, 4U);
  EXPECT_EQ(second.decision(gemm(101, 64, 64))->source, ChoiceSource::kModel);
  EXPECT_EQ(second.decision(gemm(109, 64, 64))->source, ChoiceSource::kRemembered);
  EXPECT_EQ(std::ranges::count(second.choices_text(), '\n'), 2 + 4);
}

TEST(DispatcherTest, TrialsAreRowsOfADataSetWhoseFastestIsTheChoice) {
  const testing_support::TemporaryFolder folder;
  const auto path = folder / "trials.ftd";
  const auto provider = std::make_shared<TextProvider>(machine());
  const Problem problem = gemm(200, 300, 100);
  Dispatcher first({.measure_top = 3, .measure_rounds = 2, .keep_trials = true});
  ASSERT_TRUE(first.add(provider, shipped()));
  // The third config is more than twice as slow as the others and is not tried again.
  for (const double nanoseconds : {400., 300., 2000., 380., 320.}) {
    const auto turn = first.next(problem);
    ASSERT_TRUE(turn);
    ASSERT_TRUE(turn->is_trial());
    first.report(*turn, nanoseconds);
  }
  const auto measured = first.decision(problem);
  ASSERT_TRUE(measured);
  ASSERT_TRUE(measured->is_settled);
  const auto appended = first.append_trials(path, "cpu-gemm");
  ASSERT_TRUE(appended) << appended.error().message;
  EXPECT_EQ(*appended, 3U);
  EXPECT_EQ(first.append_trials(path, "cpu-gemm"), 0U);

  const auto trials = read_dataset(path);
  ASSERT_TRUE(trials) << trials.error().message;
  EXPECT_EQ(trials->header().family, "cpu-gemm");
  ASSERT_EQ(trials->size(), 3U);
  const auto rows = trials->rows();
  EXPECT_EQ(rows[0].time_ns, 380);
  EXPECT_EQ(rows[0].samples, 2);
  EXPECT_EQ(rows[1].time_ns, 300);
  EXPECT_EQ(trials->configs()[rows[1].config], measured->config);
  EXPECT_EQ(rows[2].outcome, Outcome::kCensored);
  EXPECT_EQ(rows[2].time_ns, 1500);  // 3/4 of what was seen
  const Context& context = trials->contexts()[rows[0].context];
  EXPECT_EQ(context.machine, machine().digest());
  EXPECT_NE(context.fidelity, 0);

  Dispatcher second({});
  ASSERT_TRUE(second.add(provider, shipped()));
  expect_loaded(second, path, problem, measured->config, 300);

  // The full protocol counts more than trials, and a comparison's times count nothing.
  {
    const auto journal = JournalWriter::open(path, trials->header());
    ASSERT_TRUE(journal) << journal.error().message;
    Measurement careful = trials->measurement(0);
    careful.context.fidelity = 0;
    careful.metrics = {{kTimeNs, 350}};
    ASSERT_TRUE((*journal)->append(careful));
    Measurement compared = trials->measurement(1);
    compared.context.fidelity = -1;
    compared.flags = kFlagReference;
    ASSERT_TRUE((*journal)->append(compared));
  }
  ASSERT_TRUE(second.load_choices(path));
  EXPECT_EQ(second.decision(problem)->config, trials->configs()[rows[0].config]);
  EXPECT_EQ(second.decision(problem)->measured_ns, 350);

  Dispatcher elsewhere({.keep_trials = true});
  ASSERT_TRUE(elsewhere.add(std::make_shared<TextProvider>(machine(32)), shipped()));
  for (const auto& refused :
       {elsewhere.load_choices(path), elsewhere.append_trials(path, "cpu-gemm")}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
  }
  Dispatcher without({});
  EXPECT_EQ(without.load_choices(path).error().code, ErrorCode::kMismatch);
  EXPECT_EQ(without.append_trials(path, "cpu-gemm").error().code, ErrorCode::kNotFound);
  // A data set that is damaged is refused as a whole.
  std::string bytes = read_text_file(path).value();
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_text_file_atomically(path, bytes));
  EXPECT_EQ(second.load_choices(path).error().code, ErrorCode::kCorrupt);
}

TEST(DispatcherTest, SeveralDispatchersAppendTheirTrialsToOneFile) {
  const testing_support::TemporaryFolder folder;
  const auto path = folder / "trials.ftd";
  const auto provider = std::make_shared<TextProvider>(machine());
  constexpr int kWriters = 4;
  std::vector<std::thread> writers;
  std::atomic<std::size_t> appended = 0;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      Dispatcher dispatcher({.measure_top = 2, .measure_rounds = 1, .keep_trials = true});
      ASSERT_TRUE(dispatcher.add(provider, shipped()));
      for (int size = 0; size < 3; ++size) {
        measure(dispatcher, gemm(100 + i, 64 + size, 64));
        const auto rows = dispatcher.append_trials(path, "cpu-gemm");
        ASSERT_TRUE(rows) << rows.error().message;
        appended += *rows;
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(appended, 2U * 3 * kWriters);
  const auto trials = read_dataset(path);
  ASSERT_TRUE(trials) << trials.error().message;
  EXPECT_EQ(trials->size(), 2U * 3 * kWriters);
  Dispatcher reader({.max_remembered = 5});
  ASSERT_TRUE(reader.add(provider, shipped()));
  EXPECT_EQ(reader.load_choices(path), 5U);
}

TEST(DispatcherTest, TrialsThatCannotBeAppendedStayKept) {
  const testing_support::TemporaryFolder folder;
  const auto path = folder / "trials.ftd";
  Dispatcher dispatcher({.measure_top = 2, .measure_rounds = 1, .keep_trials = true});
  ASSERT_TRUE(dispatcher.add(std::make_shared<TextProvider>(machine()), shipped()));
  measure(dispatcher, gemm(200, 300, 100));
  EXPECT_FALSE(dispatcher.append_trials(folder / "missing" / "trials.ftd", "cpu-gemm"));
  EXPECT_EQ(dispatcher.append_trials(path, "cpu-gemm"), 2U);
}

TEST(DispatcherTest, AForkedChildDecidesWhateverOtherThreadsDid) {
  const auto provider = std::make_shared<TextProvider>(machine());
  Dispatcher dispatcher({.measure_top = 2, .measure_rounds = 1, .max_problems = 8});
  ASSERT_TRUE(dispatcher.add(provider, shipped()));
  const Problem known = gemm(200, 300, 100);
  measure(dispatcher, known);
  const Config config = dispatcher.decision(known)->config;
  std::atomic<int> size{1};
  const auto meet_others = [&] { measure(dispatcher, gemm(size.fetch_add(1) % 500 + 1, 50, 60)); };
  const testing_support::Busy one(meet_others);
  const testing_support::Busy other(meet_others);
  for (int fork = 0; fork < 25; ++fork) {
    ASSERT_TRUE(testing_support::is_true_in_child([&] {
      measure(dispatcher, gemm(600 + fork, 50, 60));
      return dispatcher.decision(known)->config == config &&
             dispatcher.decision(gemm(600 + fork, 50, 60))->source == ChoiceSource::kMeasured;
    })) << fork;
  }
}

TEST(DispatcherTest, AForkedChildRepeatsTrialsThatItsParentHadUnderWay) {
  const auto provider = std::make_shared<TextProvider>(machine());
  Dispatcher dispatcher({.measure_top = 2, .measure_rounds = 1});
  ASSERT_TRUE(dispatcher.add(provider, shipped()));
  const Problem problem = gemm(200, 300, 100);
  const auto under_way = dispatcher.next(problem);
  ASSERT_TRUE(under_way);
  ASSERT_TRUE(under_way->is_trial());
  EXPECT_TRUE(testing_support::is_true_in_child([&] {
    measure(dispatcher, problem);
    return dispatcher.decision(problem)->is_settled;
  }));
  measure(dispatcher, problem);
  EXPECT_FALSE(dispatcher.decision(problem)->is_settled) << "its trial is still to be reported";
  dispatcher.report(*under_way, 500);
  EXPECT_TRUE(dispatcher.decision(problem)->is_settled);
}

TEST(DispatcherTest, ManyThreadsAgreeOnOneDecision) {
  const auto provider = std::make_shared<TextProvider>(machine());
  Dispatcher dispatcher({.measure_top = 4, .measure_rounds = 2});
  ASSERT_TRUE(dispatcher.add(provider, shipped()));
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int call = 0; call < 300; ++call) {
          const auto turn = dispatcher.next(gemm(64 + 8 * (call % 20), 128, 96));
          ASSERT_TRUE(turn);
          dispatcher.report(*turn, static_cast<double>(text_of(*turn).size()));
        }
      });
    }
  }
  for (int size = 0; size < 20; ++size) {
    EXPECT_TRUE(dispatcher.decision(gemm(64 + 8 * size, 128, 96))->is_settled);
  }
}

}  // namespace
}  // namespace foretune
