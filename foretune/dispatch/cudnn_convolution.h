/* Convolutions by cuDNN 9 with an engine that a model chooses, beside the backend's execute.
 *
 *   foretune_cudnn* foretune = NULL;
 *   foretune_cudnn_open("conv-h200.ftm", &foretune);
 *   foretune_cudnn_problem problem = {.operation = FORETUNE_CUDNN_FORWARD, .type = 9, .spatial = 2,
 *       .channels_last = 1, .batch = 32, .channels = 64, .filters = 64, .groups = 1,
 *       .input = {56, 56}, .filter = {3, 3}, .padding = {1, 1}, .stride = {1, 1},
 *       .dilation = {1, 1}};
 *   size_t bytes = 0;
 *   foretune_cudnn_workspace(foretune, &problem, &bytes);
 *   ...
 *   status = foretune_cudnn_convolution(foretune, handle, &problem, x, w, y, workspace, bytes);
 *
 * The best of the model's ranking runs that the library makes a plan of within the workspace. Where
 * the model cannot say (outside of what it was trained on; made for another device or version of
 * the library), the first answer of the library's heuristic A that can run does, as it would
 * without us. The functions compute the library's convolution: y = x * w or one of its gradients,
 * with sums in float. The output is overwritten (alpha is 1, beta 0).
 *
 * The plan is made at the first call of a problem and kept for all with the same problem and
 * workspace size on the same device, of the newest 4,096. It takes up to milliseconds; where the
 * heuristic's own first answer compiles its kernel at run time, up to a second. A later call costs
 * a look-up beside the library's execute, which takes its stream from the handle. Calls may be
 * captured into graphs as the library's, also the first of a problem if the context was current
 * when foretune_cudnn_open() was called.
 *
 * With `measure_top` the first runs of a problem are trials: they run the best-ranked engines and
 * the heuristic's first answer on the caller's operands, and events on the caller's stream time
 * them. Then the fastest stays. No call waits. Work of less than a millisecond is repeated: a call
 * tries all engines, up to 100 runs of each. Captured and deterministic calls are never trials.
 * Results of different engines are rounded differently.
 *
 * Nothing of CUDA is linked. The cuDNN that the process uses already is found by its name
 * (libcudnn.so.9); else it is loaded. The device's context has to be current.
 *
 * Thread safety: any number of threads may use one foretune_cudnn, each with a handle of its own;
 * threads that run one problem at once take turns. Open and close by one. */
#ifndef FORETUNE_DISPATCH_CUDNN_CONVOLUTION_H_
#define FORETUNE_DISPATCH_CUDNN_CONVOLUTION_H_

#include <stddef.h>
#include <stdint.h>

#include "foretune/base/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct foretune_cudnn foretune_cudnn;
typedef struct foretune_cudnn_plan foretune_cudnn_plan;

/* Codes of our own that functions return beside those of the library. */
enum {
  FORETUNE_CUDNN_OK = 0,
  FORETUNE_CUDNN_INVALID_ARGUMENT = 1,
  FORETUNE_CUDNN_NOT_FOUND = 2,   /* no such model file */
  FORETUNE_CUDNN_CORRUPT = 3,     /* the file is not a model, or damaged */
  FORETUNE_CUDNN_MISMATCH = 4,    /* give a model that was trained on data of the family cudnn */
  FORETUNE_CUDNN_UNSUPPORTED = 5, /* a library cannot be loaded; cuDNN does not run the problem */
  FORETUNE_CUDNN_IO = 6,          /* the device or the library fails */
  FORETUNE_CUDNN_INTERNAL = 8
};

/* Which tensor is computed from the other two. */
enum {
  FORETUNE_CUDNN_FORWARD = 0,         /* y from x and w */
  FORETUNE_CUDNN_BACKWARD_DATA = 1,   /* the gradient of x from that of y and w */
  FORETUNE_CUDNN_BACKWARD_WEIGHT = 2, /* the gradient of w from that of y and x */
};

/* A convolution (cross-correlation) and its gradients, all described by the sizes of the forward
 * pass. Arrays hold `spatial` numbers: depth, height, width; height, width; or width alone.
 * Tensors are packed, x (batch, channels, input), w (filters, channels / groups, filter) and y
 * (batch, filters, output): with channels_last the channels come last in memory (NHWC, KRSC), else
 * second (NCHW, KCRS). Sizes count from 1 to 2^31 - 1, padding from 0. */
typedef struct foretune_cudnn_problem {
  int operation;     /* see above */
  int type;          /* cudnnDataType_t of all tensors: 0 float, 2 half, 9 bfloat16 */
  int tf32;          /* not 0: operands of type float may be rounded to tf32 */
  int channels_last; /* not 0: see above */
  int deterministic; /* not 0: refuses engines whose results may differ from run to run */
  int spatial;       /* 1, 2 or 3 */
  int64_t batch;
  int64_t channels;
  int64_t filters;
  int64_t groups;
  int64_t input[3];
  int64_t filter[3];
  int64_t padding[3]; /* zeros on either side */
  int64_t stride[3];
  int64_t dilation[3]; /* distance of a filter's points, 1 for a dense one */
} foretune_cudnn_problem;

/* All 0 and NULL: the defaults. */
typedef struct foretune_cudnn_options {
  /* A model file; NULL: the models shipped for the device and the version of the library, if there
   * are any (else the heuristic chooses). */
  const char* model_path;
  const char* cudnn_library;  /* NULL: as above */
  const char* driver_library; /* NULL: libcuda.so.1 */
  /* Least gain of a pick over the heuristic's first, as predicted (0.02 is 2 %). */
  double margin;
  /* Not 0: ask the model's fast mode first, which knows no margin. */
  int fast;
  /* Not 0: up to two engines of a problem may be such that compile their kernel when the plan is
   * made, for up to a second each. */
  int compiles;
  /* Bytes of workspace that a plan of foretune_cudnn_prepare() and foretune_cudnn_workspace() may
   * need; 0: 2^30. */
  size_t workspace_limit;
  /* How many engines are on trial, with the heuristic's first answer; 0 and 1: none. */
  int measure_top;
  /* A data set (.ftd) with the trials of earlier processes: their fastest engines are chosen.
   * A file that does not exist is one without trials. NULL: none. */
  const char* trials_path;
  /* The share of the time that trials may take, with the making of their engines; until they have
   * their turn, the heuristic's first answer runs. 0 and 1: no limit. */
  double trial_share;
} foretune_cudnn_options;

/* NULL for the path: see below. */
FORETUNE_API int foretune_cudnn_open(const char* model_path, foretune_cudnn** out);
/* `options` may be NULL; `message` (may be NULL) gets one sentence on failure. */
FORETUNE_API int foretune_cudnn_open_with(const foretune_cudnn_options* options,
                                          foretune_cudnn** out, char* message, size_t message_size);
/* Plans of foretune_cudnn_prepare() may outlive it. */
FORETUNE_API void foretune_cudnn_close(foretune_cudnn* foretune);

/* Appends to `trials_path` what the trials measured since the last call. `foretune inspect` shows
 * the file, and `foretune train` takes it. Returns one of the values above: INVALID_ARGUMENT
 * without a `trials_path`. `message` as above. */
FORETUNE_API int foretune_cudnn_save(foretune_cudnn* foretune, char* message, size_t message_size);

/* Makes the plan of a problem and says how many bytes of workspace it needs: give as many to
 * foretune_cudnn_convolution(), which then runs this plan. Returns one of the values above. */
FORETUNE_API int foretune_cudnn_workspace(foretune_cudnn* foretune,
                                          const foretune_cudnn_problem* problem, size_t* bytes);

/* The handle is a cudnnHandle_t. x, w and y are device addresses at multiples of 16 bytes; the one
 * that the operation computes is written, and must not overlap the others. The workspace lies at a
 * multiple of 256 bytes; with fewer bytes than foretune_cudnn_workspace() says, another plan is
 * chosen that gets along. Returns a cudnnStatus_t: 0, 2000 for wrong arguments, 3000 where the
 * library does not run the problem, or what it says. */
FORETUNE_API int foretune_cudnn_convolution(foretune_cudnn* foretune, void* handle,
                                            const foretune_cudnn_problem* problem, const void* x,
                                            const void* w, const void* y, void* workspace,
                                            size_t workspace_bytes);

/* Says what runs a problem and why, in one line: "model: engine=62 tile_size=12 ..." or "heuristic:
 * rank 1 of a: engine=5 ...", and after a semicolon the reason why it is not the model's first, if
 * it is not. Makes the plan if there is none yet. Returns the length needed, as snprintf; 0 for a
 * problem that is not run. */
FORETUNE_API size_t foretune_cudnn_explain(foretune_cudnn* foretune,
                                           const foretune_cudnn_problem* problem, char* text,
                                           size_t size);

/* A plan of one's own, for callers that keep plans themselves: no look-up. */
typedef struct foretune_cudnn_facts {
  size_t workspace_bytes;
  int engine;         /* the library's number */
  int deterministic;  /* 1 when results are the same in every run */
  int is_models_pick; /* 0: the library's heuristic chose */
  int is_settled;     /* 0: trials go on. Then the workspace is the most that the next run may need,
                       * and the rest is that of the best so far. */
} foretune_cudnn_facts;

/* `message` as above. Returns one of the values above. */
FORETUNE_API int foretune_cudnn_prepare(foretune_cudnn* foretune,
                                        const foretune_cudnn_problem* problem,
                                        foretune_cudnn_plan** out, char* message,
                                        size_t message_size);
FORETUNE_API foretune_cudnn_facts foretune_cudnn_plan_facts(const foretune_cudnn_plan* plan);
/* As foretune_cudnn_explain(). */
FORETUNE_API size_t foretune_cudnn_plan_text(const foretune_cudnn_plan* plan, char* text,
                                             size_t size);
/* Runs a plan with a workspace of at least as many bytes as it needs, on the handle's stream;
 * without a handle, on `stream` (a cudaStream_t) with a handle of Foretune's. Operands and result
 * as foretune_cudnn_convolution(); nothing has been enqueued where the result is not 0. */
FORETUNE_API int foretune_cudnn_run(const foretune_cudnn_plan* plan, void* handle, void* stream,
                                    const void* x, const void* w, const void* y, void* workspace,
                                    size_t workspace_bytes);
FORETUNE_API void foretune_cudnn_release(foretune_cudnn_plan* plan);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FORETUNE_DISPATCH_CUDNN_CONVOLUTION_H_ */
