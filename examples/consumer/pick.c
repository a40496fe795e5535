/* Asks a model for the config of one GEMM, in C: pick_c MODEL M N K */
#include <stdio.h>
#include <stdlib.h>

#include "foretune/select/foretune.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: pick_c MODEL M N K\n");
    return 2;
  }
  foretune_selector* selector = NULL;
  char message[256] = "";
  if (foretune_selector_open(argv[1], &selector, message, sizeof message) != FORETUNE_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  const foretune_gemm gemm = {.m = atoll(argv[2]),
                              .n = atoll(argv[3]),
                              .k = atoll(argv[4]),
                              .batch = 1,
                              .op = FORETUNE_MM,
                              .dtype = FORETUNE_F32,
                              .layout = FORETUNE_RRR};
  foretune_choice choice;
  const int code = foretune_select_gemm(selector, &gemm, &choice);
  if (code != FORETUNE_OK) {
    fprintf(stderr, "the question was refused with code %d\n", code);
    foretune_selector_close(selector);
    return 1;
  }
  int status = 0;
  if (choice.words == NULL) {
    printf("abstained: %s\n", foretune_reason_text(choice.reason));
    status = 3;
  } else {
    char text[256];
    foretune_config_text(selector, choice.candidate, text, sizeof text);
    printf("%s: %s\n", choice.status == FORETUNE_PICKED ? "picked" : "fallback", text);
  }
  foretune_selector_close(selector);
  return status;
}
