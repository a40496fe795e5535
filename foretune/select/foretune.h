/* The selector's C interface: problem in, config out. No exception, no allocation and no lock per
 * call; answers are cached per problem. Link libforetune_select (or foretune::select in CMake).
 *
 *   foretune_selector* selector = NULL;
 *   char message[256];
 *   if (foretune_selector_open("gemm.ftm", &selector, message, sizeof message) != FORETUNE_OK) ...
 *   foretune_gemm gemm = {.m = 128, .n = 1536, .k = 7168, .batch = 1, .op = FORETUNE_MM};
 *   foretune_choice choice;
 *   foretune_select_gemm(selector, &gemm, &choice);
 *   if (choice.status == FORETUNE_PICKED) use(choice.words, choice.word_count);
 *   foretune_selector_close(selector);
 *
 * Thread safety: one selector may be used by any number of threads; open and close by one. */
#ifndef FORETUNE_SELECT_FORETUNE_H_
#define FORETUNE_SELECT_FORETUNE_H_

#include <stddef.h>
#include <stdint.h>

#include "foretune/base/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct foretune_selector foretune_selector;

enum {
  FORETUNE_OK = 0,
  FORETUNE_INVALID_ARGUMENT = 1,
  FORETUNE_NOT_FOUND = 2,
  FORETUNE_CORRUPT = 3,
  FORETUNE_MISMATCH = 4,
  FORETUNE_UNSUPPORTED = 5,
  FORETUNE_IO = 6,
  FORETUNE_INTERNAL = 8
};

/* foretune_choice.status */
enum { FORETUNE_PICKED = 0, FORETUNE_ABSTAINED = 1 };

/* foretune_choice.reason: why the selector abstained (or FORETUNE_REASON_NONE). */
enum {
  FORETUNE_REASON_NONE = 0,
  FORETUNE_REASON_INVALID_PROBLEM = 1,   /* sizes below 1, unknown operation or type */
  FORETUNE_REASON_OUTSIDE_TRAINING = 2,  /* a feature lies outside what the model was trained on */
  FORETUNE_REASON_NO_LEGAL_CONFIG = 3,   /* no candidate is legal for this problem */
  FORETUNE_REASON_SMALL_MARGIN = 4,      /* only of the C++ interface: here, look at .margin */
  FORETUNE_REASON_UNUSABLE_MODEL = 5,    /* only after foretune_selector_open_fast */
  FORETUNE_REASON_NO_FEASIBLE_CONFIG = 6 /* only after foretune_selector_open_objective: no legal
                                            candidate is predicted to keep the bounds; the choice
                                            is the one that is predicted to miss them least */
};

/* foretune_gemm.op; .dtype, the numbers of DataType, of which these are named; .layout: how A, B
 * and C are stored, r by rows and c by columns. */
enum {
  FORETUNE_MM = 0,
  FORETUNE_ADDMM = 1,
  FORETUNE_BMM = 2,
  FORETUNE_ADDMM_RELU = 3,
  FORETUNE_ADDMM_GELU = 4
};
enum { FORETUNE_F32 = 0, FORETUNE_F16 = 1, FORETUNE_BF16 = 2, FORETUNE_I8 = 7 };
enum { FORETUNE_RCR = 0, FORETUNE_RRR = 1, FORETUNE_CRR = 2, FORETUNE_CCR = 3 };

typedef struct foretune_gemm {
  int64_t m, n, k, batch; /* elements; batch is 1 unless op is FORETUNE_BMM */
  int32_t op;
  int32_t dtype;
  int32_t layout;
} foretune_gemm;

typedef struct foretune_choice {
  int32_t status;     /* FORETUNE_PICKED or FORETUNE_ABSTAINED */
  int32_t reason;     /* FORETUNE_REASON_... */
  uint32_t candidate; /* position in the model's pool */
  uint32_t word_count;
  const int32_t* words; /* the config; lives as long as the selector. On abstention the
                           best-ranked legal config of the portfolio or else of all, or NULL
                           when nothing is legal */
  double score;         /* predicted natural log of time, up to a constant per problem */
  double margin;        /* score of the runner-up minus this score */
} foretune_choice;

/* Loads a plug-in (foretune/plugin/plugin.h), so that models and texts may speak of its problem
 * types. Before a model of such a type is opened; a second time is harmless. FORETUNE_NOT_FOUND,
 * FORETUNE_CORRUPT for a file that is no plug-in, crashes or hangs, FORETUNE_MISMATCH for one that
 * was built for another version or compiler; `message` (may be NULL) gets one sentence. */
FORETUNE_API int foretune_load_plugin(const char* path, char* message, size_t message_size);
/* Loads a model file. `message` (may be NULL) gets one sentence on failure. */
FORETUNE_API int foretune_selector_open(const char* path, foretune_selector** selector,
                                        char* message, size_t message_size);
/* The same in a fraction of the time, for programs that mostly call foretune_select_gemm_fast: the
 * exact model is made ready when a call first needs it, which then allocates and takes as long as
 * opening otherwise does; calls that need it too wait meanwhile. Checksums and everything but the
 * exact model's trees have been checked. Where those turn out to be unusable, or memory runs out,
 * foretune_select_gemm abstains for ever (FORETUNE_REASON_UNUSABLE_MODEL, .words is NULL), and
 * foretune_select_gemm_fast where it would have asked the exact model. */
FORETUNE_API int foretune_selector_open_fast(const char* path, foretune_selector** selector,
                                             char* message, size_t message_size);
/* Loads a model file whose picks are to follow an objective: "minimise time_ns subject to pack_ns
 * <= 2 ms". The model predicts every metric that is named (foretune train --metrics); .score is
 * then what the model learned of the target, smaller is better, and .margin counts in it.
 * FORETUNE_NOT_FOUND for a metric that it does not predict, FORETUNE_UNSUPPORTED for an objective
 * of several targets. */
FORETUNE_API int foretune_selector_open_objective(const char* path, const char* objective,
                                                  foretune_selector** selector, char* message,
                                                  size_t message_size);
/* Makes the exact model ready now; FORETUNE_OK when it is. On any thread, any number of times. */
FORETUNE_API int foretune_selector_prepare(const foretune_selector* selector, char* message,
                                           size_t message_size);
FORETUNE_API void foretune_selector_close(foretune_selector* selector);
FORETUNE_API int foretune_select_gemm(const foretune_selector* selector, const foretune_gemm* gemm,
                                      foretune_choice* choice);
/* As foretune_select_gemm, in about a microsecond also for a problem never seen, from the model's
 * portfolio. Asks the exact model where the fast one has a bound over `max_regret` (ln time; a
 * negative number stands for the default), outside of training and where the model has no fast one.
 * `exact` (may be NULL) gets 1 for an answer of the exact model, else 0; `bound` (may be NULL) what
 * the fast pick may lose. */
FORETUNE_API int foretune_select_gemm_fast(const foretune_selector* selector,
                                           const foretune_gemm* gemm, double max_regret,
                                           foretune_choice* choice, int* exact, double* bound);
/* The same for a problem of any type by its text: "conv n=8 c=64 k=64 hi=56 wi=56 y=3 x=3". Parses,
 * which takes about a microsecond and may allocate. FORETUNE_INVALID_ARGUMENT, with a sentence in
 * `message` (may be NULL), for a text that is no problem. */
FORETUNE_API int foretune_select_problem(const foretune_selector* selector, const char* problem,
                                         foretune_choice* choice, char* message,
                                         size_t message_size);
/* The same by the values of the fields, in the order of foretune_field_name: neither parses nor
 * allocates. Labels are given by their numbers. `count` is the number of fields, or fewer where
 * later versions of the library added some at the end, which then have their defaults.
 * FORETUNE_INVALID_ARGUMENT for another number of fields. */
FORETUNE_API int foretune_select_fields(const foretune_selector* selector, const int64_t* fields,
                                        size_t count, foretune_choice* choice);
/* As foretune_select_gemm_fast, by the values of the fields. */
FORETUNE_API int foretune_select_fields_fast(const foretune_selector* selector,
                                             const int64_t* fields, size_t count, double max_regret,
                                             foretune_choice* choice, int* exact, double* bound);
/* The type of the model's problems ("gemm", "conv"), and its fields. Constant strings; "" for a
 * field that there is not. */
FORETUNE_API const char* foretune_problem_type(const foretune_selector* selector);
FORETUNE_API size_t foretune_field_count(const foretune_selector* selector);
FORETUNE_API const char* foretune_field_name(const foretune_selector* selector, size_t field);
/* A constant English sentence for a FORETUNE_REASON_... */
FORETUNE_API const char* foretune_reason_text(int reason);
/* Text form of a candidate ("mr=8 nr=32 ..."); returns the length needed, as snprintf. */
FORETUNE_API size_t foretune_config_text(const foretune_selector* selector, uint32_t candidate,
                                         char* text, size_t size);
FORETUNE_API const char* foretune_version(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FORETUNE_SELECT_FORETUNE_H_ */
