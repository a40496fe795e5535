// A family in one file: sums an array of m numbers with one of several unrolled loops. The problem
// type is borrowed from GEMM (m is the length); everything else is what a real family needs.
// docs/guides/extending/family.md walks through it.
#include "foretune/family/family.h"

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"

namespace {

using namespace foretune;  // NOLINT(google-build-using-namespace): an example of user code

// 1. The configs and the rules of legal ones: data, so that models can store them.
Result<std::shared_ptr<const CompiledSpace>> sum_space() {
  return CompiledSpace::create(
      {.schema = {.name = "sum", .version = 1, .parameters = {{.name = "chains", .labels = {}}}},
       .problem_type = kGemmProblem,
       .domains = {{1, 2, 4, 8}},
       .constraints = {{"chains <= m", "more chains than numbers"}},
       .canonical = {}});
}

// 2. Inputs, output and the check: the output is poisoned before a run and compared after it.
class SumData final : public ProblemData {
 public:
  SumData(std::int64_t length, std::uint64_t seed) : values_(static_cast<std::size_t>(length)) {
    Rng rng(seed);
    for (double& value : values_) {
      value = static_cast<double>(rng.between(-1000, 1000));
    }
  }
  void poison() override { result = -0.5; }  // no sum of whole numbers
  Support verify() override {
    double expected = 0;
    for (const double value : values_) {
      expected += value;
    }
    return result == expected ? Support::yes()
                              : Support::no("the sum is ", result, " instead of ", expected);
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(values_.size() * sizeof(double));
  }
  const std::vector<double>& values() const { return values_; }
  double result = 0;

 private:
  std::vector<double> values_;
};

// 3. One config bound to one problem's data.
class SumRun final : public Run {
 public:
  SumRun(SumData& data, std::size_t chains) : data_(data), chains_(chains) {}
  void run() override {
    std::array<double, 8> sums{};
    const std::vector<double>& values = data_.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      sums.at(i % chains_) += values[i];
    }
    data_.result = 0;
    for (std::size_t chain = 0; chain < chains_; ++chain) {
      data_.result += sums.at(chain);
    }
  }

 private:
  SumData& data_;
  std::size_t chains_;
};

class SumArtifact final : public Artifact {
 public:
  explicit SumArtifact(std::size_t chains) : chains_(chains) {}
  Result<std::unique_ptr<Run>> bind(const Problem& /*problem*/, ProblemData& data) override {
    return std::make_unique<SumRun>(dynamic_cast<SumData&>(data), chains_);
  }

 private:
  std::size_t chains_;
};

// 4. The family ties them together.
class SumFamily final : public Family {
 public:
  static Result<std::unique_ptr<Family>> create(const FamilyOptions& options) {
    auto family = std::make_unique<SumFamily>();
    FORETUNE_TRY(family->info_.space, sum_space());
    family->info_.name = "sum";
    family->info_.description = "sums of arrays, as an example";
    family->info_.problem_type = kGemmProblem;
    family->info_.config_schema = family->info_.space->definition().schema;
    family->info_.fingerprint = options.fingerprint;
    family->info_.needs_worker = false;
    return family;
  }
  const FamilyInfo& info() const override { return info_; }
  Support supports(const Problem& problem) const override {
    return problem.type() == info_.problem_type ? Support::yes()
                                                : Support::no("only gemm problems have an m");
  }
  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    FORETUNE_TRY(std::unique_ptr<Space> space,
                 ParametricSpace::bind(info_.space, problem, info_.fingerprint.hardware));
    return space;
  }
  std::string artifact_key(const Problem& /*problem*/, const Config& config) const override {
    return to_text(info_.config_schema, config);
  }
  Result<std::unique_ptr<Artifact>> prepare(const Problem& /*problem*/,
                                            const Config& config) const override {
    return std::make_unique<SumArtifact>(static_cast<std::size_t>(config.words[0]));
  }
  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t seed) const override {
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
    return std::make_unique<SumData>(gemm.m(), seed);
  }

 private:
  FamilyInfo info_;
};

Result<int> measure_all() {
  FORETUNE_TRY(std::unique_ptr<Family> created, SumFamily::create({}));
  const std::shared_ptr<const Family> family = std::move(created);
  FORETUNE_TRY(const Problem problem, Problem::parse("gemm m=100000 n=1 k=1"));
  FORETUNE_TRY(const std::unique_ptr<Space> space, family->space(problem));
  const std::unique_ptr<Measurer> measurer = make_local_measurer(family, Protocol{}, Context{});
  int failures = 0;
  for (std::uint64_t i = 0; i < space->enumerable()->count(); ++i) {
    const Config config = space->enumerable()->unrank(i);
    const Measurement measurement = measurer->measure({problem, config, -1});
    const MetricValue* time = measurement.find(kTimeNs);
    std::printf("%-10s %s %.0f ns\n", to_text(space->schema(), config).c_str(),
                std::string(to_string(measurement.outcome)).c_str(),
                time == nullptr ? 0.0 : time->value);
    failures += measurement.outcome == Outcome::kOk ? 0 : 1;
  }
  return failures;
}

}  // namespace

int main() {
  const Result<int> failures = measure_all();
  if (!failures) {
    std::printf("%s\n", failures.error().message.c_str());
    return 1;
  }
  return *failures == 0 ? 0 : 1;
}
