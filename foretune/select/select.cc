#include "foretune/select/select.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/model/joint_model.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/objective_scorer.h"
#include "foretune/model/training_range.h"
#include "foretune/select/internal/selector_state.h"

namespace foretune {
namespace {

constexpr std::size_t kAlignment = WorkspacePool::kAlignment;

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Returns the cache key of a problem. It is empty, which is never cached, for problems with very
// many fields.
AnswerCache::Key key_of(ProblemType type, std::span<const std::int64_t> fields,
                        const Digest& payload, bool is_described) {
  AnswerCache::Key key;
  if (fields.size() + (payload.is_zero() ? 1 : 4) > AnswerCache::kMaxKeyWords) {
    return key;
  }
  key.add(static_cast<std::uint64_t>(type));
  for (const std::int64_t field : fields) {
    key.add(static_cast<std::uint64_t>(field));
  }
  if (!payload.is_zero()) {
    key.add(payload.high);
    key.add(payload.low);
    key.add(is_described ? 1 : 0);
  }
  return key;
}

// True when Problem::create() could accept the fields.
bool in_range(ProblemType type, std::span<const std::int64_t> fields) {
  const ProblemSchema* schema = find_problem_schema(type);
  if (schema == nullptr || fields.size() != schema->fields.size() ||
      schema->payload == PayloadUse::kRequired) {
    return false;
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] < schema->fields[i].minimum || fields[i] > schema->fields[i].maximum) {
      return false;
    }
  }
  return true;
}

// Checks the range first, because the refusals of Problem::create() allocate.
Result<Problem> problem_of(ProblemType type, std::span<const std::int64_t> fields) {
  if (!in_range(type, fields)) {
    return fail(ErrorCode::kInvalidArgument);
  }
  return Problem::create(type, Problem::Fields(fields));
}

AnswerCache::Answer to_answer(const Choice& choice) {
  return {static_cast<std::uint64_t>(choice.reason) |
              static_cast<std::uint64_t>(choice.has_candidate) << 8U |
              static_cast<std::uint64_t>(choice.candidate) << 32U,
          std::bit_cast<std::uint64_t>(choice.score), std::bit_cast<std::uint64_t>(choice.margin)};
}

// Returns the fields that are the same for every problem inside of the model's domain: enumerated
// ones of which training had one label.
std::vector<std::optional<std::int64_t>> known_fields(const Model& model) {
  std::vector<std::optional<std::int64_t>> out;
  if (!model.domain) {
    return out;
  }
  for (const ApplicabilityDomain::Label& label : model.domain->labels) {
    if (std::has_single_bit(label.seen)) {
      out.resize(std::max<std::size_t>(out.size(), label.field + std::size_t{1}));
      out[label.field] = std::countr_zero(label.seen);
    }
  }
  return out;
}

Choice from_answer(const AnswerCache::Answer& answer) {
  return {.reason = static_cast<AbstainReason>(answer[0] & 0xffU),
          .has_candidate = ((answer[0] >> 8U) & 1U) != 0,
          .candidate = static_cast<std::uint32_t>(answer[0] >> 32U),
          .score = std::bit_cast<double>(answer[1]),
          .margin = std::bit_cast<double>(answer[2])};
}

}  // namespace

std::string_view to_string(AbstainReason reason) {
  switch (reason) {
    case AbstainReason::kNone:
      return "The selector picked a config.";
    case AbstainReason::kInvalidProblem:
      return "The problem is not one that the model's family can have.";
    case AbstainReason::kOutsideTraining:
      return "The problem lies outside of what the model was trained on.";
    case AbstainReason::kNoLegalConfig:
      return "No candidate of the model is legal for the problem.";
    case AbstainReason::kSmallMargin:
      return "The best two candidates are predicted to be closer than the margin asked for.";
    case AbstainReason::kUnusableModel:
      return "The exact model could not be made ready.";
    case AbstainReason::kNoFeasibleConfig:
      return "No candidate is predicted to keep the bounds of the objective.";
  }
  return "This reason is unknown.";
}

Status Selector::State::prepare_fast(std::shared_ptr<const CompiledSpace> compiled) {
  space = std::move(compiled);
  FORETUNE_TRY(table, feature_table_of(model));
  if (model.domain) {
    domain.emplace(*model.domain);
  }
  if (!model.distilled || space == nullptr) {
    return {};
  }
  const DistilledModel& fast = *model.distilled;
  ranker = DistilledRanker(fast);
  fast_rules = FoldedRules(space, hardware(), known_fields(model));
  for (std::uint32_t place = 0; place < fast.portfolio.size(); ++place) {
    const std::span<const std::int32_t> words = words_of(fast.portfolio[place]);
    if (space->is_legal_config(words, hardware())) {
      fast_places.push_back(place);
    }
    fast_rules.add(words);
  }
  return {};
}

Result<std::unique_ptr<Selector::State::Exact>> Selector::State::make_exact() {
  // A body that did not come as bytes was checked with the rest of the model.
  if (!parts.body.empty()) {
    FORETUNE_TRY_STATUS(read_body(parts));
    FORETUNE_TRY_STATUS(check_body(model, true));
  }
  auto made = std::make_unique<Exact>();
  ConfigList list(model.config_schema);
  made->scored.reserve(model.pool.size());
  list.reserve(model.pool.size());
  made->by_words = ConfigIndex(model.pool);
  // Most sequences of a large pool are for other problems, and scoring them all takes long.
  constexpr std::size_t kMaxSequences = 1024;
  const bool is_portfolio_only = space == nullptr && model.pool.size() > kMaxSequences;
  for (std::uint32_t i = 0; i < model.pool.size(); ++i) {
    const bool is_scored =
        space != nullptr
            ? space->is_legal_config(words_of(i), hardware())
            : !is_portfolio_only || std::find(model.portfolio.begin(), model.portfolio.end(), i) !=
                                        model.portfolio.end();
    if (is_scored) {
      made->scored.push_back(i);
      list.add(words_of(i));
      made->by_words.insert(i);
    }
  }
  for (const std::uint32_t candidate : model.portfolio) {
    if (std::binary_search(made->scored.begin(), made->scored.end(), candidate)) {
      made->portfolio.push_back(candidate);
    }
  }
  if (made->scored.empty()) {
    return fail(ErrorCode::kMismatch, "no candidate of the model is legal for its hardware");
  }
  FORETUNE_TRY(made->columns, prepare_checked(model, list));
  made->pool = made->columns;
  if (judge) {
    FORETUNE_TRY(made->pool, objective_pool(made->columns, columns, *judge));
  }
  // The workspace has the problem's features, all scores, then the pool's own workspace.
  made->scores_offset = aligned(feature_count(*table, FeatureKind::kProblem) * sizeof(double));
  made->pool_offset = made->scores_offset + aligned(made->scored.size() * sizeof(double));
  made->workspaces = std::make_unique<WorkspacePool>(
      made->pool_offset +
      std::max(made->pool->workspace_bytes(), made->columns->workspace_bytes()));
  return made;
}

Selector::State::Exact* Selector::State::prepare_exact() noexcept {
  const std::lock_guard lock(preparing);
  if (exact_owner != nullptr || exact_failed.load(std::memory_order_relaxed)) {
    return exact_owner.get();
  }
  try {
    if (auto made = make_exact(); made) {
      exact_owner = std::move(*made);
    } else {
      failure = std::move(made.error());
    }
  } catch (const std::exception&) {
    // The message is so short that it needs no memory either.
    failure = {.code = ErrorCode::kInternal, .message = "out of memory"};
  }
  if (exact_owner == nullptr) {
    parts.model.body = {};
    exact_failed.store(true, std::memory_order_release);
  }
  exact_made.store(exact_owner.get(), std::memory_order_release);
  return exact_owner.get();
}

bool Selector::State::inside_training(const Problem& problem,
                                      std::span<std::byte> workspace) const noexcept {
  if (domain) {
    return domain->is_inside(problem.fields());
  }
  const std::span row(reinterpret_cast<double*>(workspace.data()), model.problem_range.size());
  table->problem_row(problem, hardware(), row);
  return std::equal(row.begin(), row.end(), model.problem_range.begin(), &is_within);
}

std::pair<Selector::State::Form, std::uint32_t> Selector::State::form_of(
    const Exact& exact, std::uint32_t candidate, const Problem& problem) const {
  if (space == nullptr) {
    return {Form::kCanonical, candidate};
  }
  // Only spaces with unusually many parameters allocate here.
  CompiledSpace::WordsBuffer buffer(words_of(candidate));
  const std::span<std::int32_t> same = buffer.view();
  if (!space->canonicalise(same, problem.fields(), hardware())) {
    return {Form::kCanonical, candidate};
  }
  const std::optional<std::uint32_t> found = exact.by_words.find(same);
  return found ? std::pair(Form::kRepresented, *found) : std::pair(Form::kAlone, candidate);
}

bool Selector::State::is_legal_sequence(std::uint32_t candidate, const Problem& problem) const {
  const std::unique_ptr<Space> sequences = table->space(problem, hardware());
  // Without a space no sequence counts as legal.
  return sequences != nullptr && sequences->why_not(model.pool[candidate]) &&
         table->may_run(problem, hardware(), model.pool[candidate]);
}

// Finds the best and the second best legal candidate. It checks the legality only of candidates
// that would be one of them: a few dozen out of thousands.
void Selector::State::choose(const Exact& exact, const Problem& problem,
                             std::span<const double> scores, Form form, Choice& choice) const {
  const std::span<const std::uint32_t> scored = exact.scored;
  double best = std::numeric_limits<double>::infinity();
  double second = best;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!(scores[i] < second) || !is_legal(scored[i], problem) ||
        form_of(exact, scored[i], problem).first != form) {
      continue;
    }
    if (scores[i] < best) {
      second = best;
      best = scores[i];
      choice.candidate = scored[i];
      choice.has_candidate = true;
    } else {
      second = scores[i];
    }
  }
  // A config that violates a bound cannot be the runner-up of one that keeps all bounds.
  if (keeps_bounds(best) && !keeps_bounds(second)) {
    second = std::numeric_limits<double>::infinity();
  }
  choice.reason = !choice.has_candidate ? AbstainReason::kNoLegalConfig
                  : keeps_bounds(best)  ? AbstainReason::kNone
                                        : AbstainReason::kNoFeasibleConfig;
  choice.score = choice.has_candidate ? best : 0;
  choice.margin = choice.has_candidate ? second - best : 0;
}

Choice Selector::State::choose_of_portfolio(const Exact& exact, const Problem& problem,
                                            std::span<const double> scores) const {
  const std::span<const std::uint32_t> scored = exact.scored;
  Choice choice{.reason = AbstainReason::kOutsideTraining};
  double best = std::numeric_limits<double>::infinity();
  for (const std::uint32_t candidate : exact.portfolio) {
    if (!is_legal(candidate, problem)) {
      continue;
    }
    const std::uint32_t same = form_of(exact, candidate, problem).second;
    const double score = scores[static_cast<std::size_t>(
        std::lower_bound(scored.begin(), scored.end(), same) - scored.begin())];
    if (score < best) {
      best = score;
      choice.has_candidate = true;
      choice.candidate = candidate;
    }
  }
  return choice;
}

Choice Selector::State::decide(const Exact& exact, const Problem& problem,
                               std::span<std::byte> workspace) const noexcept {
  if (problem.type() != model.problem_type) {
    return {.reason = AbstainReason::kInvalidProblem};
  }
  const bool is_inside = inside_training(problem, workspace);
  const std::span scores(reinterpret_cast<double*>(workspace.data() + exact.scores_offset),
                         exact.scored.size());
  exact.pool->score(problem, workspace.subspan(exact.pool_offset), scores, {});
  Choice choice;
  if (!is_inside) {
    choice = choose_of_portfolio(exact, problem, scores);
    if (choice.has_candidate) {
      return choice;
    }
  }
  choose(exact, problem, scores, Form::kCanonical, choice);
  if (!choice.has_candidate) {
    choose(exact, problem, scores, Form::kAlone, choice);
  }
  if (!is_inside) {
    choice.reason = AbstainReason::kOutsideTraining;
  }
  return choice;
}

namespace {

// Four smallest ones of every fourth value do not wait for each other.
std::int64_t smallest(const std::array<std::int64_t, DistilledModel::kMaxPortfolio>& values) {
  std::array<std::int64_t, 4> out{values[0], values[1], values[2], values[3]};
  for (std::size_t i = 4; i < values.size(); i += 4) {
    for (std::size_t k = 0; k < 4; ++k) {
      out[k] = std::min(out[k], values[i + k]);
    }
  }
  return std::min(std::min(out[0], out[1]), std::min(out[2], out[3]));
}

}  // namespace

std::optional<FastChoice> Selector::State::decide_fast(const Problem& problem,
                                                       double max_regret) const noexcept {
  // A distilled model sees only fields, and predicts only time.
  if (fast_places.empty() || judge || !domain || problem.type() != model.problem_type ||
      problem.has_payload() || !domain->is_inside(problem.fields())) {
    return std::nullopt;
  }
  const DistilledModel& fast = *model.distilled;
  DistilledRanker::Inputs inputs;  // NOLINT: written before it is read
  ranker.inputs(problem.fields(), inputs);
  FastChoice out{.bound = static_cast<double>(fast.bound(inputs))};
  if (!(out.bound <= max_regret)) {
    return std::nullopt;
  }
  DistilledRanker::Scores scores;  // NOLINT: written before it is read
  ranker.scores(inputs, scores);
  // Legality is checked in the order of scores, until the best two are known: a check takes longer
  // than finding the next candidate. Equal scores are in the order of places.
  constexpr std::int64_t kAsked = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kPlaces = DistilledModel::kMaxPortfolio;
  std::array<std::int64_t, kPlaces> line;
  line.fill(kAsked);
  for (const std::uint32_t place : fast_places) {
    line[place] = scores[place] * kPlaces + place;
  }
  FoldedRules::Outcomes outcomes;
  std::array<std::int64_t, 2> best{};
  std::size_t found = 0;
  while (found < best.size()) {
    const std::int64_t next = smallest(line);
    if (next == kAsked) {
      break;
    }
    const auto place = static_cast<std::size_t>(next & (kPlaces - 1));
    line[place] = kAsked;
    if (fast_rules.is_legal(place, problem.fields(), outcomes)) {
      if (found == 0) {
        out.choice.candidate = fast.portfolio[place];
        out.choice.has_candidate = true;
      }
      best[found++] = scores[place];
    }
  }
  if (found == 0) {
    return std::nullopt;
  }
  out.choice.score = static_cast<double>(best[0]) * fast.score_unit;
  out.choice.margin = found == 1 ? std::numeric_limits<double>::infinity()
                                 : static_cast<double>(best[1] - best[0]) * fast.score_unit;
  return out;
}

Selector::Selector() = default;
Selector::~Selector() = default;

Result<std::unique_ptr<Selector>> Selector::make(ModelParts parts, const SelectorOptions& options) {
  std::unique_ptr<Selector> selector(new Selector());
  selector->state_ = std::make_unique<State>(std::move(parts));
  State& state = *selector->state_;
  if (is_joint(state.model)) {
    adapt_to_machine(state.parts.model,
                     options.machine ? *options.machine : this_machine_for(state.model));
  }
  FORETUNE_TRY(std::shared_ptr<const CompiledSpace> space, check_header(state.model));
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(state.model.kind));
  if (state.parts.body.empty()) {
    FORETUNE_TRY_STATUS(check_body(state.model));
  } else if (kind->columns != nullptr) {
    // The columns are in the body.
    FORETUNE_TRY_STATUS(read_body(state.parts));
    FORETUNE_TRY_STATUS(check_body(state.model, true));
  }
  FORETUNE_TRY_STATUS(check_lasting(state.model));
  state.columns = columns_of(state.model);
  if (options.objective) {
    FORETUNE_TRY_STATUS(state.follow(*options.objective));
  }
  FORETUNE_TRY_STATUS(state.prepare_fast(std::move(space)));
  if (options.preparation == Preparation::kAtOpen) {
    FORETUNE_TRY_STATUS(selector->prepare());
  }
  return selector;
}

Result<std::unique_ptr<Selector>> Selector::create(Model model) {
  return create(std::move(model), SelectorOptions{});
}

Result<std::unique_ptr<Selector>> Selector::create(Model model, const SelectorOptions& options) {
  return make({.model = std::move(model), .body = {}, .columns = {}},
              {.preparation = Preparation::kAtOpen,
               .objective = options.objective,
               .machine = options.machine});
}

Result<std::unique_ptr<Selector>> Selector::open(const std::filesystem::path& path,
                                                 Preparation preparation) {
  return open(path, SelectorOptions{.preparation = preparation});
}

Result<std::unique_ptr<Selector>> Selector::open(const std::filesystem::path& path,
                                                 const SelectorOptions& options) {
  FORETUNE_TRY(ModelParts parts, read_model_parts(path));
  Result<std::unique_ptr<Selector>> selector = make(std::move(parts), options);
  if (!selector) {
    return fail_because(selector.error(), "cannot use the model ", path.string());
  }
  return selector;
}

Status Selector::prepare() const {
  return state_->exact() != nullptr ? Status() : Status(tl::unexpected(state_->failure));
}

Choice Selector::State::answer(const AnswerCache::Key& key, const Problem& problem) noexcept {
  Exact* const ready = exact();
  if (ready == nullptr) {
    return {.reason = AbstainReason::kUnusableModel};
  }
  const WorkspacePool::Lease workspace = ready->workspaces->borrow();
  const Choice choice = decide(*ready, problem, workspace.bytes());
  ready->cache.insert(key, to_answer(choice));
  return choice;
}

Choice Selector::select(const Problem& problem) const noexcept {
  const AnswerCache::Key key =
      key_of(problem.type(), problem.fields(), problem.payload(), problem.descriptor() != nullptr);
  AnswerCache::Answer found;
  return state_->find(key, found) ? from_answer(found) : state_->answer(key, problem);
}

Choice Selector::select(ProblemType type, std::span<const std::int64_t> fields) const noexcept {
  // Only valid problems get into the cache, so a hit needs no check.
  const AnswerCache::Key key = key_of(type, fields, {}, false);
  AnswerCache::Answer found;
  if (state_->find(key, found)) {
    return from_answer(found);
  }
  const Result<Problem> problem = problem_of(type, fields);
  if (!problem) {
    return {.reason = AbstainReason::kInvalidProblem};
  }
  return state_->answer(key, *problem);
}

Choice Selector::select(const Problem& problem, double min_margin) const noexcept {
  Choice choice = select(problem);
  if (choice.picked() && choice.margin < min_margin) {
    choice.reason = AbstainReason::kSmallMargin;
  }
  return choice;
}

FastChoice Selector::select_fast(const Problem& problem, double max_regret) const noexcept {
  if (const std::optional<FastChoice> fast = state_->decide_fast(problem, max_regret)) {
    return *fast;
  }
  return {.choice = select(problem), .exact = true};
}

FastChoice Selector::select_fast(ProblemType type, std::span<const std::int64_t> fields,
                                 double max_regret) const noexcept {
  const Result<Problem> problem = problem_of(type, fields);
  if (!problem) {
    return {.choice = {.reason = AbstainReason::kInvalidProblem}, .exact = true};
  }
  return select_fast(*problem, max_regret);
}

Choice Selector::select_uncached(const Problem& problem) const noexcept {
  return state_->answer({}, problem);
}

AbstainReason Selector::coverage(const Problem& problem) const noexcept {
  const State::Exact* const exact = state_->exact();
  if (exact == nullptr || problem.type() != state_->model.problem_type) {
    return exact == nullptr ? AbstainReason::kUnusableModel : AbstainReason::kInvalidProblem;
  }
  const WorkspacePool::Lease workspace = exact->workspaces->borrow();
  return state_->inside_training(problem, workspace.bytes()) ? AbstainReason::kNone
                                                             : AbstainReason::kOutsideTraining;
}

ProblemType Selector::problem_type() const { return state_->model.problem_type; }

const Model& Selector::model() const {
  static_cast<void>(state_->exact());
  return state_->model;
}

std::size_t Selector::pool_size() const { return state_->model.pool.size(); }

Config Selector::config(std::uint32_t candidate) const {
  FORETUNE_CHECK(candidate < state_->model.pool.size());
  return state_->model.pool[candidate];
}

std::span<const std::int32_t> Selector::words(std::uint32_t candidate) const {
  FORETUNE_CHECK(candidate < state_->model.pool.size());
  return state_->words_of(candidate);
}

std::string Selector::config_text(std::uint32_t candidate) const {
  return to_text(state_->model.config_schema, config(candidate));
}

}  // namespace foretune
