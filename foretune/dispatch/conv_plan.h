/* Convolutions and their gradients on this CPU, with kernels that the dispatcher chooses.
 *
 *   foretune_conv conv = FORETUNE_CONV_DEFAULTS;
 *   conv.c = 64; conv.k = 128; conv.hi = conv.wi = 56; conv.y = conv.x = 3;
 *   conv.pad_h = conv.pad_w = 1;
 *   conv.weights = FORETUNE_CONV_CONSTANT;
 *   conv.epilogue = FORETUNE_CONV_BIAS_RELU;
 *   foretune_conv_plan* plan = NULL;
 *   char message[256];
 *   if (foretune_conv_plan_create(&conv, NULL, &plan, message, sizeof message) != FORETUNE_OK) ...
 *   foretune_conv_plan_pack(plan, w, message, sizeof message);
 *   const foretune_conv_operands operands = {.input = x, .bias = b, .result = y};
 *   foretune_conv_plan_run(plan, &operands, message, sizeof message);
 *   foretune_conv_plan_destroy(plan);
 *
 * Tensors are dense and have the problem's layout and type: with channels last an input is
 * n x di x hi x wi x c, weights are k x z x y x x x (c / g), an output has k channels. Any number
 * of channels runs as it is: nothing has to be padded. Layouts and types that no kernel computes
 * are refused when the plan is made.
 *
 * Functions that return int return FORETUNE_OK or another code of select/foretune.h. `message` (may
 * be NULL) gets one sentence on failure, as much as fits, and "" otherwise.
 *
 * Thread safety: a plan may be run by any number of threads at once; runs that use several threads
 * take turns. A run that overlaps a pack uses either the old weights or the new. Destroy a plan
 * when nothing uses it any more. A forked child may use the plans of its parent. */
#ifndef FORETUNE_DISPATCH_CONV_PLAN_H_
#define FORETUNE_DISPATCH_CONV_PLAN_H_

#include <stddef.h>
#include <stdint.h>

#include "foretune/base/c_api.h"
#include "foretune/select/foretune_conv.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct foretune_conv_plan foretune_conv_plan;

/* All 0 and NULL: the defaults. Plans with equal options share one dispatcher with its threads, its
 * decisions and its measurements until the process ends; both files are read for the first of
 * them. */
typedef struct foretune_conv_options {
  int threads; /* 0: all cores of the process */
  /* Above 1: the first runs of a problem try this many configs, three times each, on the caller's
   * operands, and the fastest stays. */
  int measure_top;
  /* A model that `foretune train` made of measurements of cpu-conv. NULL: none; the family's
   * textbook config runs, unless choices or trials know a better one. */
  const char* model_path;
  /* A data set (.ftd) with trials of earlier processes, or of `foretune tune` and `foretune
   * collect`: its fastest configs are chosen. foretune_conv_plan_save() appends to it. NULL, or a
   * file that does not exist yet: none. */
  const char* choices_path;
} foretune_conv_options;

/* The tensors of a run. A forward pass reads `input` and writes the output to `result`; a gradient
 * of the input reads `output`, the gradient of the output, and one of the weights reads `input` and
 * `output`. The tensor to be computed must not overlap the others. */
typedef struct foretune_conv_operands {
  const void* input;
  const void* weights; /* NULL: those that foretune_conv_plan_pack() took */
  const void* output;
  const void* bias;   /* one value for each of the k filters, where the epilogue has one */
  const void* addend; /* of the output's shape, where the epilogue adds one */
  void* result;
} foretune_conv_operands;

/* Decides how the problem runs, which takes milliseconds where it is new. `options` may be NULL.
 * `*out` is NULL on failure. INVALID_ARGUMENT for sizes that make no sense, UNSUPPORTED for a type
 * or layout without kernels; NOT_FOUND, CORRUPT, MISMATCH and IO for the files. */
FORETUNE_API int foretune_conv_plan_create(const foretune_conv* conv,
                                           const foretune_conv_options* options,
                                           foretune_conv_plan** out, char* message,
                                           size_t message_size);
/* `plan` may be NULL. */
FORETUNE_API void foretune_conv_plan_destroy(foretune_conv_plan* plan);
/* Takes the weights for all later runs without weights; the caller may free them. INVALID_ARGUMENT
 * unless the problem has constant weights, UNSUPPORTED when memory is short. */
FORETUNE_API int foretune_conv_plan_pack(foretune_conv_plan* plan, const void* weights,
                                         char* message, size_t message_size);
/* INVALID_ARGUMENT for a tensor that is missing or overlaps the result, UNSUPPORTED when memory is
 * short; the result is then unchanged. */
FORETUNE_API int foretune_conv_plan_run(foretune_conv_plan* plan,
                                        const foretune_conv_operands* operands, char* message,
                                        size_t message_size);
/* How many elements the three tensors of the forward pass have. Each pointer may be NULL. */
FORETUNE_API int foretune_conv_plan_elements(const foretune_conv_plan* plan, int64_t* input,
                                             int64_t* weights, int64_t* output);
/* The config that runs now and why, as one line: "model: ", "remembered: ", "measured: ",
 * "portfolio: ", "default: " or, while trials go on, "variant: ", the config's values, and after a
 * semicolon the reason why no better source decided. Returns the length needed, as snprintf; 0 for
 * no plan. */
FORETUNE_API size_t foretune_conv_plan_explain(const foretune_conv_plan* plan, char* text,
                                               size_t size);
/* Appends to `choices_path` what the trials of all plans with the same options measured since the
 * last call. INVALID_ARGUMENT without a `choices_path`. */
FORETUNE_API int foretune_conv_plan_save(foretune_conv_plan* plan, char* message,
                                         size_t message_size);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FORETUNE_DISPATCH_CONV_PLAN_H_ */
