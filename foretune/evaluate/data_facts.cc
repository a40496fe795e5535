// States which data were compared, and warns of facts that may make the figures worthless.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/quantities.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/internal/diagnosis.h"
#include "foretune/model/joint_model.h"
#include "foretune/model/model_kind.h"

namespace foretune::evaluate_internal {
namespace {

// For at most this many problems with few candidates the whole space is counted, to see whether it
// has more.
constexpr std::size_t kMaxCounted = 300;

class DataDescription {
 public:
  DataDescription(const DiagnosisInput& diagnosis, Evaluation& out)
      : input_(diagnosis.input),
        dataset_(diagnosis.input.dataset),
        header_(diagnosis.input.dataset.header()),
        model_(diagnosis.input.model),
        out_(out) {}

  void describe() {
    count();
    count_unseen();
    state_data();
    state_model();
    state_ties();
    warn_about_leaks();
    warn_about_data();
    warn_about_picks();
  }

 private:
  template <class... Parts>
  void warn(const Parts&... parts) {
    out_.warnings.push_back(concat(parts...));
  }
  template <class... Parts>
  void state(std::string name, const Parts&... parts) {
    out_.facts.emplace_back(std::move(name), concat(parts...));
  }

  void count() {
    for (const std::uint32_t id : input_.evaluated) {
      std::size_t candidates = 0;
      double lowest_bound_ns = 0;
      for (const MeasuredCandidate& candidate : input_.times.candidates(id)) {
        candidates += candidate.state != MeasuredState::kRefused ? 1U : 0U;
        if (candidate.state == MeasuredState::kBound &&
            (lowest_bound_ns == 0 || candidate.time_ns < lowest_bound_ns)) {
          lowest_bound_ns = candidate.time_ns;
        }
      }
      candidates_.push_back(static_cast<double>(candidates));
      uncertain_oracles_ +=
          lowest_bound_ns > 0 && lowest_bound_ns < input_.times.ordinary_oracle_ns(id) ? 1U : 0U;
      out_.reference_problems += input_.times.has_reference(id) ? 1U : 0U;
    }
    std::vector<bool> evaluated(dataset_.problems().size(), false);
    for (const std::uint32_t id : input_.evaluated) {
      evaluated[id] = true;
    }
    for (std::uint32_t id = 0; id < evaluated.size(); ++id) {
      if (!evaluated[id] && !input_.times.candidates(id).empty()) {
        ++out_.skipped_problems;
        without_time_ += input_.times.has_oracle(id) ? 0U : 1U;
      }
    }
  }

  void count_unseen() {
    const Dataset* training = input_.options.training;
    std::unordered_set<std::uint64_t> groups;
    if (training != nullptr) {
      out_.training_problems = training->problems().size();
      for (const Problem& problem : training->problems()) {
        groups.insert(problem.group());
      }
    }
    for (const std::uint32_t id : input_.evaluated) {
      seen_ += groups.contains(dataset_.problems()[id].group()) ? 1U : 0U;
    }
    const std::vector<std::uint32_t>& folds = input_.options.fold_of_problem;
    if (!folds.empty()) {
      std::unordered_map<std::uint64_t, std::set<std::uint32_t>> folds_of_group;
      for (std::uint32_t id = 0; id < folds.size(); ++id) {
        folds_of_group[dataset_.problems()[id].group()].insert(folds[id]);
      }
      for (const std::uint32_t id : input_.evaluated) {
        seen_ += folds_of_group[dataset_.problems()[id].group()].size() > 1 ? 1U : 0U;
      }
    }
    out_.unseen_problems = input_.evaluated.size() - seen_;
  }

  void state_data() {
    state("family", header_.family);
    state("measured on",
          header_.fingerprint.device.empty() ? "unknown device" : header_.fingerprint.device);
    state("data set", count_of(input_.evaluated.size(), "problem"), " evaluated, ",
          count_of(dataset_.size(), "measurement"), ", role ", to_string(header_.role));
    state("candidates", count_text(static_cast<std::size_t>(median(candidates_))),
          " measured per problem in the median, at least ",
          count_text(
              static_cast<std::size_t>(*std::min_element(candidates_.begin(), candidates_.end()))));
    if (!input_.options.fold_of_problem.empty()) {
      const std::set<std::uint32_t> folds(input_.options.fold_of_problem.begin(),
                                          input_.options.fold_of_problem.end());
      state("held out", "cross-validation in ", folds.size(),
            " folds; baselines learn from the other folds too");
    } else if (input_.options.training != nullptr) {
      state("baselines", "from the training set, ", count_of(out_.training_problems, "problem"));
    } else if (model_ != nullptr && !model_->portfolio.empty()) {
      state("baselines", "from the model's own portfolio of ", model_->portfolio.size());
    }
    state("best times", out_.reference_problems == 0
                            ? std::string("as measured once")
                            : concat("re-measured interleaved on ", out_.reference_problems, " of ",
                                     count_of(input_.evaluated.size(), "problem")));
  }

  void state_model() {
    if (model_ == nullptr) {
      return;
    }
    std::string parts;
    for (const auto& [name, text] : describe_model(*model_).lines) {
      parts += concat(", ", trim(name), ": ", text);
    }
    state("model", model_->kind, parts, ", target ", model_->target, ", pool of ",
          count_text(model_->pool.size()), ", features ", model_->feature_table, ", seed ",
          model_->seed);
    if (!model_->fingerprint.device.empty()) {
      state("trained on", model_->fingerprint.device);
    }
  }

  // The tolerance of ties depends on the spreads (relative interquartile ranges), so it states
  // them.
  void state_ties() {
    std::vector<double> tolerances;
    for (const std::uint32_t id : input_.evaluated) {
      tolerances.push_back(std::max(kTieTolerance, input_.times.ordinary_oracle_spread(id)));
    }
    state("ties", "within the larger of 1 % and the spreads (those of the best: ",
          fixed(100 * median(tolerances), 1), " % in the median)");
  }

  void warn_about_leaks() {
    if (model_ != nullptr && model_->data_fingerprint != Digest{} &&
        model_->data_fingerprint == dataset_.fingerprint() &&
        input_.options.fold_of_problem.empty()) {
      warn(
          "The model was trained on this very data set: the figures say nothing about problems it ",
          "has not seen.");
    }
    if (seen_ > 0) {
      warn(count_text(seen_), " of ", count_text(input_.evaluated.size()),
           input_.options.fold_of_problem.empty()
               ? " problems share their group with the training data"
               : " problems have members of their group in other folds",
           " (same sizes): a leak, the figures are too good.");
    }
    if (input_.options.training != nullptr &&
        input_.options.training->header().role == DatasetRole::kValidation) {
      warn("The training data given for the baselines has the role of a validation set.");
    }
  }

  void warn_about_data() {
    const std::uint64_t machine = header_.fingerprint.digest();
    if (model_ != nullptr && machine != 0 && model_->fingerprint.digest() != 0 &&
        !learned_from(*model_, machine) && !knows_device(*model_, header_.fingerprint)) {
      warn("The model was trained on another machine (", model_->fingerprint.device,
           ") than the data set was measured on (", header_.fingerprint.device, ").");
    }
    if (input_.evaluated.size() < kFewProblems) {
      warn("Only ", count_of(input_.evaluated.size(), "problem"), " evaluated: below ",
           kFewProblems, " the intervals are too narrow.");
    }
    if (const std::size_t few = few_candidates(); few > 0) {
      warn(count_text(few), " of ", count_of(input_.evaluated.size(), "problem"),
           " have fewer than ", kFewCandidates, " measured configs",
           known_space(dataset_, model_) ? " although more are legal: " : "; if more are legal, ",
           "their best may be far from the best there is, and efficiencies look too good.");
    }
    if (uncertain_oracles_ > 0) {
      warn("On ", count_text(uncertain_oracles_), " of ",
           count_of(input_.evaluated.size(), "problem"),
           " a config that was stopped early might be faster than the best known one.");
    }
    // With folds, problems that no fold tests are left out on purpose.
    if (input_.options.fold_of_problem.empty() ? out_.skipped_problems > 0 : without_time_ > 0) {
      warn("The figures leave out ", count_of(out_.skipped_problems, "problem"),
           " of the data set: ", count_text(without_time_), " without any measured time, ",
           count_text(out_.skipped_problems - without_time_), " not ranked.");
    }
    warn_about_conditions();
  }

  void warn_about_conditions() {
    std::set<std::uint16_t> contexts;
    std::size_t disturbed = 0;
    for (const Dataset::Row& row : dataset_.rows()) {
      if ((row.flags & kFlagReference) == 0) {
        contexts.insert(row.context);
      }
      disturbed += (row.flags & (kFlagLoaded | kFlagThrottled)) != 0 ? 1U : 0U;
    }
    if (contexts.size() > 1) {
      warn("Measurements from ", contexts.size(),
           " contexts (threads, cache state, machine) are mixed; each config counts with its ",
           "median.");
    }
    if (disturbed * 10 > dataset_.size()) {
      warn(fixed(100.0 * static_cast<double>(disturbed) / static_cast<double>(dataset_.size()), 0),
           " % of the measurements were taken on a loaded or throttled machine.");
    }
  }

  void warn_about_picks() {
    const std::string of = concat(" of ", count_text(input_.evaluated.size()), " picks ");
    const std::size_t missing = out_.unmeasured_picks;
    if (missing > 0) {
      warn(count_text(missing), of, missing == 1 ? "was" : "were",
           " not measured: what counts instead is the best-ranked measured config, or 0 without ",
           "one.");
    }
    if (out_.model.failed > 0) {
      warn(count_text(out_.model.failed), of, "did not run and count as 0.");
    }
    if (out_.model.bounds > 0) {
      warn(count_text(out_.model.bounds), of, out_.model.bounds == 1 ? "was" : "were",
           " stopped early: the efficiency counted is an upper bound.");
    }
  }

  // Counts problems with fewer than kFewCandidates measured candidates although the space has more.
  [[nodiscard]] std::size_t few_candidates() const {
    const std::shared_ptr<const CompiledSpace> space = known_space(dataset_, model_);
    std::size_t few = 0;
    std::size_t counted = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i] >= static_cast<double>(kFewCandidates)) {
        continue;
      }
      // Without a space, a problem on which all configs were measured lacks none that is known.
      if (!space && candidates_[i] >= static_cast<double>(dataset_.configs().size())) {
        continue;
      }
      if (space && counted++ < kMaxCounted) {
        const Problem& problem = dataset_.problems()[input_.evaluated[i]];
        const auto bound = ParametricSpace::bind(space, problem, dataset_.hardware_of(problem));
        if (bound && (*bound)->enumerable() != nullptr &&
            static_cast<double>((*bound)->count()) <= candidates_[i]) {
          continue;
        }
      }
      ++few;
    }
    return few;
  }

  const BaselineInput& input_;
  const Dataset& dataset_;
  const DatasetHeader& header_;
  const Model* model_;
  Evaluation& out_;
  std::vector<double> candidates_;  // per evaluated problem
  std::size_t uncertain_oracles_ = 0;
  std::size_t without_time_ = 0;
  std::size_t seen_ = 0;  // evaluated problems with their group in the training data
};

}  // namespace

void describe_data(const DiagnosisInput& diagnosis, Evaluation& out) {
  DataDescription(diagnosis, out).describe();
}

}  // namespace foretune::evaluate_internal
