// A collecting program to be killed by a test: the null family with faults, through a worker.
//   tune_collect_driver FILE          collects into FILE; prints the key of every record kept
//   tune_collect_driver FILE active   the same with a model in the loop
//   tune_collect_driver FILE metrics  the same with three metrics, one of them of a later stage
//   tune_collect_driver worker        is its worker
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/collect/active.h"
#include "foretune/collect/collect.h"
#include "foretune/collect/testing/first_word_scorer.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/null/null.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

// Remembers the key of the last measurement and its stage, to be said once its record is kept.
class SayingMeasurer final : public Measurer {
 public:
  explicit SayingMeasurer(std::unique_ptr<Measurer> measurer) : measurer_(std::move(measurer)) {}
  Measurement measure(const Request& request) override {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    Measurement measurement = measurer_->measure(request);
    pending_ = resume_key(request.problem, request.config, measurement.context);
    is_evaluation_ = measurement.is_evaluation();
    return measurement;
  }
  std::vector<Measurement> compare(const Problem& problem, std::span<const Config> configs,
                                   int rounds) override {
    return measurer_->compare(problem, configs, rounds);
  }
  const Context& context() const override { return measurer_->context(); }
  void kept() const {
    std::printf("%s%llu\n", is_evaluation_ ? "evaluated " : "",
                static_cast<unsigned long long>(pending_));
    std::fflush(stdout);
  }

 private:
  std::unique_ptr<Measurer> measurer_;
  std::uint64_t pending_ = 0;
  bool is_evaluation_ = false;
};

int complain(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int collect_into(const std::string& self, const std::string& path, const std::string& mode) {
  FamilyOptions options;
  options.parameters = {{"crash", "0.03"}, {"wrong", "0.05"}, {"prepare_fail", "0.05"}};
  if (mode == "metrics") {
    options.parameters.insert(
        options.parameters.end(),
        {{"metrics", "1"}, {"evaluate_crash", "0.02"}, {"evaluate_fail", "0.05"}});
  }
  if (mode == "sequence") {
    options.parameters.emplace_back("sequence", "yes");
  }
  const auto family = make_null(options);
  if (!family) {
    return complain(family.error());
  }
  const FamilyInfo& info = (*family)->info();
  Context context;
  context.machine = info.fingerprint.digest();
  auto worker = make_worker_measurer(
      {.worker_command = {self, "worker"}, .family = "null", .family_options = options}, {},
      context);
  if (!worker) {
    return complain(worker.error());
  }
  SayingMeasurer measurer(*std::move(worker));
  DatasetHeader header = header_of(info);
  header.seed = 42;
  header.created_by = "test";
  std::optional<Dataset> previous;
  if (std::filesystem::exists(path)) {
    auto read = read_dataset(path);
    // A file whose very first record is torn is begun anew by the writer.
    if (read) {
      previous = *std::move(read);
    }
  }
  auto journal = JournalWriter::open(path, header);
  if (!journal) {
    return complain(journal.error());
  }
  std::vector<Problem> problems;
  for (const std::int64_t m : {1, 17, 64, 200, 1000, 4096}) {
    problems.push_back(GemmProblem::create({.m = m, .n = 512, .k = 333})->to_problem());
  }
  CollectOptions collect_options;
  collect_options.search_space.sample_size = 40;
  collect_options.previous = previous ? &*previous : nullptr;
  if (mode == "metrics") {
    collect_options.evaluate = {std::string(kNullAccuracy)};
  }
  CollectHooks hooks;
  hooks.on_progress = [&](const CollectProgress&) { measurer.kept(); };
  const ActiveOptions active{.measurements = 40 * problems.size()};
  const ActiveTrainer train = [](const Dataset& measured, const std::function<bool()>& /*go_on*/)
      -> Result<std::unique_ptr<Scorer>> { return std::make_unique<FirstWordScorer>(measured); };
  const auto result =
      mode == "active" ? collect_active(**family, measurer, **journal, problems, collect_options,
                                        active, train, hooks)
                       : collect(**family, measurer, **journal, problems, collect_options, hooks);
  if (!result) {
    return complain(result.error());
  }
  std::printf("done\n");
  return 0;
}

Result<std::unique_ptr<Family>> null_only(std::string_view /*name*/, const FamilyOptions& options) {
  return make_null(options);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[2] : "";
  if (argc < 2 || argc > 3 ||
      (argc == 3 && mode != "active" && mode != "metrics" && mode != "sequence")) {
    std::fprintf(stderr, "usage: %s FILE [active | metrics | sequence] | worker\n", argv[0]);
    return 2;
  }
  if (std::string(argv[1]) == "worker") {
    return foretune::run_worker(STDIN_FILENO, STDOUT_FILENO, foretune::null_only);
  }
  return foretune::collect_into(argv[0], argv[1], mode);
}
