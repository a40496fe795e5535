#include <array>
#include <span>
#include <string>

#include "foretune/base/c_errors.h"
#include "foretune/base/c_text.h"
#include "foretune/plugin/shared_object.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/foretune.h"
#include "foretune/select/select.h"
#include "foretune/version.h"

struct foretune_selector {
  std::unique_ptr<foretune::Selector> selector;
};

namespace foretune {
namespace {

static_assert(static_cast<int>(ErrorCode::kInvalidArgument) == FORETUNE_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::kNotFound) == FORETUNE_NOT_FOUND);
static_assert(static_cast<int>(ErrorCode::kCorrupt) == FORETUNE_CORRUPT);
static_assert(static_cast<int>(ErrorCode::kMismatch) == FORETUNE_MISMATCH);
static_assert(static_cast<int>(ErrorCode::kUnsupported) == FORETUNE_UNSUPPORTED);
static_assert(static_cast<int>(ErrorCode::kIo) == FORETUNE_IO);
static_assert(static_cast<int>(ErrorCode::kInternal) == FORETUNE_INTERNAL);
static_assert(static_cast<int>(AbstainReason::kInvalidProblem) == FORETUNE_REASON_INVALID_PROBLEM);
static_assert(static_cast<int>(AbstainReason::kOutsideTraining) ==
              FORETUNE_REASON_OUTSIDE_TRAINING);
static_assert(static_cast<int>(AbstainReason::kNoLegalConfig) == FORETUNE_REASON_NO_LEGAL_CONFIG);
static_assert(static_cast<int>(AbstainReason::kSmallMargin) == FORETUNE_REASON_SMALL_MARGIN);
static_assert(static_cast<int>(AbstainReason::kUnusableModel) == FORETUNE_REASON_UNUSABLE_MODEL);
static_assert(static_cast<int>(AbstainReason::kNoFeasibleConfig) ==
              FORETUNE_REASON_NO_FEASIBLE_CONFIG);
static_assert(static_cast<int>(GemmOperation::kMm) == FORETUNE_MM);
static_assert(static_cast<int>(GemmOperation::kAddmm) == FORETUNE_ADDMM);
static_assert(static_cast<int>(GemmOperation::kBmm) == FORETUNE_BMM);
static_assert(static_cast<int>(GemmOperation::kAddmmRelu) == FORETUNE_ADDMM_RELU);
static_assert(static_cast<int>(GemmOperation::kAddmmGelu) == FORETUNE_ADDMM_GELU);
static_assert(static_cast<int>(DataType::kF32) == FORETUNE_F32);
static_assert(static_cast<int>(DataType::kF16) == FORETUNE_F16);
static_assert(static_cast<int>(DataType::kBf16) == FORETUNE_BF16);
static_assert(static_cast<int>(DataType::kI8) == FORETUNE_I8);
static_assert(static_cast<int>(GemmLayout::kRcr) == FORETUNE_RCR);
static_assert(static_cast<int>(GemmLayout::kRrr) == FORETUNE_RRR);
static_assert(static_cast<int>(GemmLayout::kCrr) == FORETUNE_CRR);
static_assert(static_cast<int>(GemmLayout::kCcr) == FORETUNE_CCR);

void fill(const Selector& selector, const Choice& picked, foretune_choice& choice) {
  choice.status = picked.picked() ? FORETUNE_PICKED : FORETUNE_ABSTAINED;
  choice.reason = static_cast<int32_t>(picked.reason);
  if (picked.has_candidate) {
    const std::span<const std::int32_t> words = selector.words(picked.candidate);
    choice.candidate = picked.candidate;
    choice.word_count = static_cast<uint32_t>(words.size());
    choice.words = words.data();
  }
  choice.score = picked.score;
  choice.margin = picked.margin;
}

const ProblemSchema& schema_of(const Selector& selector) {
  return *find_problem_schema(selector.problem_type());
}

// The fields of a problem with the defaults of those that a caller does not know yet.
struct AllFields {
  static constexpr std::size_t kMaxFields = 64;
  ProblemType type{};
  std::array<std::int64_t, kMaxFields> storage{};
  std::size_t size = 0;

  // Returns false for a number of fields that no version of the type has.
  bool take(const ProblemSchema& schema, const std::int64_t* fields, std::size_t count) {
    type = schema.type;
    size = schema.fields.size();
    if (fields == nullptr || size > kMaxFields || count > size ||
        (count < size && schema.fields[count].since == 1)) {
      return false;
    }
    std::copy_n(fields, count, storage.begin());
    for (std::size_t i = count; i < size; ++i) {
      storage[i] = schema.fields[i].default_value.value_or(0);
    }
    return true;
  }
  [[nodiscard]] std::span<const std::int64_t> values() const {
    return std::span(storage).first(size);
  }
};

AllFields fields_of(const foretune_gemm& gemm) {
  // In the order of GemmField.
  const std::array<std::int64_t, 7> first{gemm.op,    gemm.m,     gemm.n,     gemm.k,
                                          gemm.batch, gemm.dtype, gemm.layout};
  AllFields all;
  FORETUNE_CHECK(all.take(*find_problem_schema(kGemmProblem), first.data(), first.size()));
  return all;
}

int select_fields(const Selector& selector, ProblemType type, std::span<const std::int64_t> fields,
                  foretune_choice& choice) noexcept {
  choice = {};
  fill(selector, selector.select(type, fields), choice);
  return FORETUNE_OK;
}

int select_fields_fast(const Selector& selector, ProblemType type,
                       std::span<const std::int64_t> fields, double max_regret,
                       foretune_choice& choice, int* exact, double* bound) noexcept {
  choice = {};
  const FastChoice picked = selector.select_fast(
      type, fields, max_regret < 0 ? Selector::kMaxDistilledRegret : max_regret);
  fill(selector, picked.choice, choice);
  if (exact != nullptr) {
    *exact = picked.exact ? 1 : 0;
  }
  if (bound != nullptr) {
    *bound = picked.bound;
  }
  return FORETUNE_OK;
}

int open_selector(const char* path, Preparation preparation, foretune_selector** out, char* message,
                  std::size_t size, const char* objective = nullptr) {
  return report_errors(message, size, [&]() -> Status {
    if (out == nullptr || path == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "path and selector must not be NULL");
    }
    *out = nullptr;
    SelectorOptions options{.preparation = preparation};
    if (objective != nullptr) {
      FORETUNE_TRY(options.objective, Objective::parse(objective));
    }
    FORETUNE_TRY(std::unique_ptr<Selector> selector, Selector::open(path, options));
    *out = new foretune_selector{std::move(selector)};
    return {};
  });
}

}  // namespace
}  // namespace foretune

extern "C" {

int foretune_load_plugin(const char* path, char* message, size_t message_size) {
  return foretune::report_errors(message, message_size, [&]() -> foretune::Status {
    if (path == nullptr) {
      return fail(foretune::ErrorCode::kInvalidArgument, "no plug-in was named");
    }
    return foretune::load_plugin_to_select(path);
  });
}

int foretune_selector_open(const char* path, foretune_selector** selector, char* message,
                           size_t message_size) {
  return foretune::open_selector(path, foretune::Preparation::kAtOpen, selector, message,
                                 message_size);
}

int foretune_selector_open_fast(const char* path, foretune_selector** selector, char* message,
                                size_t message_size) {
  return foretune::open_selector(path, foretune::Preparation::kAtFirstUse, selector, message,
                                 message_size);
}

int foretune_selector_open_objective(const char* path, const char* objective,
                                     foretune_selector** selector, char* message,
                                     size_t message_size) {
  return foretune::open_selector(path, foretune::Preparation::kAtOpen, selector, message,
                                 message_size, objective == nullptr ? "" : objective);
}

int foretune_selector_prepare(const foretune_selector* selector, char* message,
                              size_t message_size) {
  return foretune::report_errors(message, message_size, [&]() -> foretune::Status {
    if (selector == nullptr) {
      return foretune::fail(foretune::ErrorCode::kInvalidArgument, "selector must not be NULL");
    }
    return selector->selector->prepare();
  });
}

void foretune_selector_close(foretune_selector* selector) { delete selector; }

int foretune_select_gemm(const foretune_selector* selector, const foretune_gemm* gemm,
                         foretune_choice* choice) {
  if (selector == nullptr || gemm == nullptr || choice == nullptr) {
    return FORETUNE_INVALID_ARGUMENT;
  }
  const foretune::AllFields all = foretune::fields_of(*gemm);
  return foretune::select_fields(*selector->selector, all.type, all.values(), *choice);
}

int foretune_select_gemm_fast(const foretune_selector* selector, const foretune_gemm* gemm,
                              double max_regret, foretune_choice* choice, int* exact,
                              double* bound) {
  if (selector == nullptr || gemm == nullptr || choice == nullptr) {
    return FORETUNE_INVALID_ARGUMENT;
  }
  const foretune::AllFields all = foretune::fields_of(*gemm);
  return foretune::select_fields_fast(*selector->selector, all.type, all.values(), max_regret,
                                      *choice, exact, bound);
}

int foretune_select_fields(const foretune_selector* selector, const int64_t* fields, size_t count,
                           foretune_choice* choice) {
  foretune::AllFields all;
  if (selector == nullptr || choice == nullptr ||
      !all.take(foretune::schema_of(*selector->selector), fields, count)) {
    return FORETUNE_INVALID_ARGUMENT;
  }
  return foretune::select_fields(*selector->selector, all.type, all.values(), *choice);
}

int foretune_select_fields_fast(const foretune_selector* selector, const int64_t* fields,
                                size_t count, double max_regret, foretune_choice* choice,
                                int* exact, double* bound) {
  foretune::AllFields all;
  if (selector == nullptr || choice == nullptr ||
      !all.take(foretune::schema_of(*selector->selector), fields, count)) {
    return FORETUNE_INVALID_ARGUMENT;
  }
  return foretune::select_fields_fast(*selector->selector, all.type, all.values(), max_regret,
                                      *choice, exact, bound);
}

int foretune_select_problem(const foretune_selector* selector, const char* problem,
                            foretune_choice* choice, char* message, size_t message_size) {
  return foretune::report_errors(message, message_size, [&]() -> foretune::Status {
    if (selector == nullptr || problem == nullptr || choice == nullptr) {
      return foretune::fail(foretune::ErrorCode::kInvalidArgument,
                            "selector, problem and choice must not be NULL");
    }
    *choice = {};
    choice->status = FORETUNE_ABSTAINED;
    FORETUNE_TRY(const foretune::Problem parsed, foretune::Problem::parse(problem));
    foretune::fill(*selector->selector, selector->selector->select(parsed), *choice);
    return {};
  });
}

const char* foretune_problem_type(const foretune_selector* selector) {
  // Names are literals, which end in a zero.
  return selector == nullptr ? "" : foretune::schema_of(*selector->selector).name.data();
}

size_t foretune_field_count(const foretune_selector* selector) {
  return selector == nullptr ? 0 : foretune::schema_of(*selector->selector).fields.size();
}

const char* foretune_field_name(const foretune_selector* selector, size_t field) {
  return field < foretune_field_count(selector)
             ? foretune::schema_of(*selector->selector).fields[field].name.data()
             : "";
}

const char* foretune_reason_text(int reason) {
  if (reason < FORETUNE_REASON_NONE || reason > FORETUNE_REASON_NO_FEASIBLE_CONFIG) {
    return "This reason is unknown.";
  }
  // The texts are literals, which end in a zero.
  return foretune::to_string(static_cast<foretune::AbstainReason>(reason)).data();
}

size_t foretune_config_text(const foretune_selector* selector, uint32_t candidate, char* text,
                            size_t size) {
  foretune::copy_text("", text, size);
  if (selector == nullptr || candidate >= selector->selector->pool_size()) {
    return 0;
  }
  try {
    return foretune::copy_text(selector->selector->config_text(candidate), text, size);
  } catch (...) {
    return 0;
  }
}

const char* foretune_version(void) { return foretune::kVersion.data(); }

}  // extern "C"
