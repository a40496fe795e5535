/* A convolution for the selector's C interface, by name instead of by position.
 *
 *   foretune_conv conv = FORETUNE_CONV_DEFAULTS;
 *   conv.n = 8; conv.c = 64; conv.k = 128; conv.hi = conv.wi = 56; conv.y = conv.x = 3;
 *   conv.pad_h = conv.pad_w = 1;
 *   foretune_select_conv(selector, &conv, &choice);
 *
 * Thread safety and cost: as foretune_select_fields. */
#ifndef FORETUNE_SELECT_FORETUNE_CONV_H_
#define FORETUNE_SELECT_FORETUNE_CONV_H_

#include "foretune/select/foretune.h"

#ifdef __cplusplus
extern "C" {
#endif

/* foretune_conv.op and .layout; .dtype as of foretune_gemm. */
enum {
  FORETUNE_CONV_FORWARD = 0,
  FORETUNE_CONV_BACKWARD_DATA = 1,
  FORETUNE_CONV_BACKWARD_WEIGHT = 2
};
enum { FORETUNE_CHANNELS_LAST = 0, FORETUNE_CHANNELS_FIRST = 1 };
/* .weights: whether they stay the same from call to call, so that they may be packed once. */
enum { FORETUNE_CONV_VARYING = 0, FORETUNE_CONV_CONSTANT = 1 };
/* .epilogue of a forward pass. */
enum {
  FORETUNE_CONV_PLAIN = 0,
  FORETUNE_CONV_BIAS = 1,
  FORETUNE_CONV_BIAS_RELU = 2,
  FORETUNE_CONV_BIAS_ADD_RELU = 3
};
/* .out, the type of the result: that of the problem, or that of its sums. */
enum { FORETUNE_CONV_OUT_SAME = 0, FORETUNE_CONV_OUT_SUMS = 1 };

/* n images of c channels and di x hi x wi points, k filters of (c / g) x z x y x x weights in g
 * groups. A gradient has the sizes of the forward pass. Strides, pads (on either side) and
 * dilations are per axis. In the order of the fields of a conv problem. */
typedef struct foretune_conv {
  int64_t op;
  int64_t n, c, k, g;
  int64_t di, hi, wi;
  int64_t z, y, x;
  int64_t stride_d, stride_h, stride_w;
  int64_t pad_d, pad_h, pad_w;
  int64_t dilation_d, dilation_h, dilation_w;
  int64_t dtype;
  int64_t layout;
  int64_t weights;
  int64_t epilogue;
  int64_t out;
  /* A forward pass may leave out one of every so many rows, columns or points of filters (0: none);
   * each `at` is the position of the one. */
  int64_t skip_rows, skip_rows_at;
  int64_t skip_columns, skip_columns_at;
  int64_t skip_taps, skip_taps_at;
} foretune_conv;

/* One group, two dimensions, no stride, padding or dilation; f32, channels last; varying weights,
 * no epilogue, a result of the same type, nothing left out. */
#define FORETUNE_CONV_DEFAULTS \
  {FORETUNE_CONV_FORWARD,      \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   1,                          \
   0,                          \
   0,                          \
   0,                          \
   1,                          \
   1,                          \
   1,                          \
   0,                          \
   0,                          \
   0,                          \
   0,                          \
   0,                          \
   0,                          \
   0,                          \
   0,                          \
   0,                          \
   0,                          \
   0}

static inline int foretune_select_conv(const foretune_selector* selector, const foretune_conv* conv,
                                       foretune_choice* choice) {
  if (conv == NULL) {  // NOLINT(modernize-use-nullptr): also for C compilers
    return FORETUNE_INVALID_ARGUMENT;
  }
  return foretune_select_fields(selector, &conv->op, sizeof *conv / sizeof conv->op, choice);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FORETUNE_SELECT_FORETUNE_CONV_H_ */
