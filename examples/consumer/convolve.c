/* Convolves an image with one filter, packed once, and computes the gradient of the filter. */
#include <foretune/dispatch/conv_plan.h>
#include <stdio.h>

enum { kSide = 4, kOutputs = (kSide - 1) * (kSide - 1) };

static int failed(const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}

int main(void) {
  char message[256] = "";
  foretune_conv conv = FORETUNE_CONV_DEFAULTS;
  foretune_conv_plan* plan = NULL;
  float image[kSide * kSide];
  const float filter[4] = {1, 0, 0, -1};
  const float bias[1] = {10};
  const float ones[kOutputs] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  float output[kOutputs];
  float gradient[4];
  int i;
  for (i = 0; i < kSide * kSide; ++i) {
    image[i] = (float)i;
  }
  conv.hi = conv.wi = kSide;
  conv.y = conv.x = 2;
  conv.weights = FORETUNE_CONV_CONSTANT;
  conv.epilogue = FORETUNE_CONV_BIAS_RELU;
  if (foretune_conv_plan_create(&conv, NULL, &plan, message, sizeof message) != FORETUNE_OK ||
      foretune_conv_plan_pack(plan, filter, message, sizeof message) != FORETUNE_OK) {
    return failed(message);
  }
  {
    const foretune_conv_operands operands = {.input = image, .bias = bias, .result = output};
    if (foretune_conv_plan_run(plan, &operands, message, sizeof message) != FORETUNE_OK) {
      return failed(message);
    }
  }
  foretune_conv_plan_destroy(plan);

  conv.op = FORETUNE_CONV_BACKWARD_WEIGHT;
  conv.weights = FORETUNE_CONV_VARYING;
  conv.epilogue = FORETUNE_CONV_PLAIN;
  if (foretune_conv_plan_create(&conv, NULL, &plan, message, sizeof message) != FORETUNE_OK) {
    return failed(message);
  }
  {
    const foretune_conv_operands operands = {.input = image, .output = ones, .result = gradient};
    if (foretune_conv_plan_run(plan, &operands, message, sizeof message) != FORETUNE_OK) {
      return failed(message);
    }
  }
  foretune_conv_plan_destroy(plan);

  conv.hi = 0;
  if (foretune_conv_plan_create(&conv, NULL, &plan, message, sizeof message) !=
          FORETUNE_INVALID_ARGUMENT ||
      plan != NULL || message[0] == 0) {
    return failed("a size of 0 was accepted");
  }
  printf("%g %g: %g %g %g %g\n", output[0], output[kOutputs - 1], gradient[0], gradient[1],
         gradient[2], gradient[3]);
  return 0;
}
