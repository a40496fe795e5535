#include "foretune/dispatch/conv_plan.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <span>
#include <utility>

#include "foretune/base/c_errors.h"
#include "foretune/base/c_text.h"
#include "foretune/dispatch/conv_dispatch.h"
#include "foretune/dispatch/conv_layer.h"
#include "foretune/dispatch/internal/plan_options.h"

namespace foretune {
namespace {

static_assert(static_cast<int>(ConvOperation::kForward) == FORETUNE_CONV_FORWARD);
static_assert(static_cast<int>(ConvOperation::kBackwardData) == FORETUNE_CONV_BACKWARD_DATA);
static_assert(static_cast<int>(ConvOperation::kBackwardWeight) == FORETUNE_CONV_BACKWARD_WEIGHT);
static_assert(static_cast<int>(ConvLayout::kChannelsLast) == FORETUNE_CHANNELS_LAST);
static_assert(static_cast<int>(ConvLayout::kChannelsFirst) == FORETUNE_CHANNELS_FIRST);
static_assert(static_cast<int>(ConvWeights::kConstant) == FORETUNE_CONV_CONSTANT);
static_assert(static_cast<int>(ConvEpilogue::kNone) == FORETUNE_CONV_PLAIN);
static_assert(static_cast<int>(ConvEpilogue::kBias) == FORETUNE_CONV_BIAS);
static_assert(static_cast<int>(ConvEpilogue::kBiasRelu) == FORETUNE_CONV_BIAS_RELU);
static_assert(static_cast<int>(ConvEpilogue::kBiasAddRelu) == FORETUNE_CONV_BIAS_ADD_RELU);

Result<ConvProblem> problem_of(const foretune_conv& conv) {
  const std::span<const std::int64_t> fields(&conv.op, sizeof conv / sizeof conv.op);
  FORETUNE_TRY(const Problem problem, Problem::create(kConvProblem, Problem::Fields(fields)));
  return ConvProblem::from(problem);
}

}  // namespace
}  // namespace foretune

struct foretune_conv_plan {
  foretune::internal::PlanOptions options;
  foretune::ConvDispatcher* dispatcher = nullptr;
  std::unique_ptr<foretune::ConvLayer> layer;
};

namespace foretune {
namespace {

Status create(const foretune_conv* conv, const foretune_conv_options* options,
              foretune_conv_plan** out) {
  if (out == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "out must not be NULL");
  }
  *out = nullptr;
  if (conv == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "conv must not be NULL");
  }
  auto plan = std::make_unique<foretune_conv_plan>();
  FORETUNE_TRY(plan->options, internal::plan_options(options));
  FORETUNE_TRY(const ConvProblem problem, problem_of(*conv));
  FORETUNE_TRY(plan->dispatcher, internal::front_end_of<ConvDispatcher>(plan->options));
  FORETUNE_TRY(plan->layer, plan->dispatcher->layer(problem));
  if (problem.dtype() != DataType::kF32) {
    return fail(ErrorCode::kUnsupported, "plans run in f32, not ", to_string(problem.dtype()));
  }
  *out = plan.release();
  return {};
}

Status run(const foretune_conv_plan* plan, const foretune_conv_operands* operands) {
  if (plan == nullptr || operands == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "plan and operands must not be NULL");
  }
  return plan->layer->run({.input = static_cast<const float*>(operands->input),
                           .weights = static_cast<const float*>(operands->weights),
                           .output = static_cast<const float*>(operands->output),
                           .bias = static_cast<const float*>(operands->bias),
                           .addend = static_cast<const float*>(operands->addend),
                           .result = static_cast<float*>(operands->result)});
}

Status save(const foretune_conv_plan* plan) {
  if (plan == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "plan must not be NULL");
  }
  return internal::save_trials(*plan->dispatcher, plan->options, "cpu-conv");
}

}  // namespace
}  // namespace foretune

int foretune_conv_plan_create(const foretune_conv* conv, const foretune_conv_options* options,
                              foretune_conv_plan** out, char* message, size_t message_size) {
  return foretune::report_errors(message, message_size,
                                 [&] { return foretune::create(conv, options, out); });
}

void foretune_conv_plan_destroy(foretune_conv_plan* plan) { delete plan; }

int foretune_conv_plan_pack(foretune_conv_plan* plan, const void* weights, char* message,
                            size_t message_size) {
  return foretune::report_errors(message, message_size, [&]() -> foretune::Status {
    if (plan == nullptr) {
      return foretune::fail(foretune::ErrorCode::kInvalidArgument, "plan must not be NULL");
    }
    return plan->layer->pack(weights);
  });
}

int foretune_conv_plan_run(foretune_conv_plan* plan, const foretune_conv_operands* operands,
                           char* message, size_t message_size) {
  return foretune::report_errors(message, message_size,
                                 [&] { return foretune::run(plan, operands); });
}

int foretune_conv_plan_elements(const foretune_conv_plan* plan, int64_t* input, int64_t* weights,
                                int64_t* output) {
  if (plan == nullptr) {
    return FORETUNE_INVALID_ARGUMENT;
  }
  const foretune::ConvProblem& problem = plan->layer->problem();
  const auto give = [](int64_t* out, std::int64_t count) {
    if (out != nullptr) {
      *out = count;
    }
  };
  give(input, problem.input_elements());
  give(weights, problem.weight_elements());
  give(output, problem.output_elements());
  return FORETUNE_OK;
}

size_t foretune_conv_plan_explain(const foretune_conv_plan* plan, char* text, size_t size) {
  foretune::copy_text("", text, size);
  if (plan == nullptr) {
    return 0;
  }
  try {
    const auto decision = plan->layer->decision();
    return decision ? foretune::copy_text(decision->text(), text, size) : 0;
  } catch (const std::exception&) {  // memory is short
    return 0;
  }
}

int foretune_conv_plan_save(foretune_conv_plan* plan, char* message, size_t message_size) {
  return foretune::report_errors(message, message_size, [&] { return foretune::save(plan); });
}
