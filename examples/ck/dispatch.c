/* The same in C: dispatch_c MODEL M,N,K ... */
#include <stdio.h>

#include "foretune/interop/ck/foretune_ck.h"
#include "foretune/select/foretune.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: dispatch_c MODEL M,N,K ...\n");
    return 2;
  }
  foretune_selector* selector = NULL;
  char message[256] = "";
  if (foretune_selector_open(argv[1], &selector, message, sizeof message) != FORETUNE_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  int status = 0;
  for (int i = 2; i < argc && status == 0; ++i) {
    long long m = 0;
    long long n = 0;
    long long k = 0;
    if (sscanf(argv[i], "%lld,%lld,%lld", &m, &n, &k) != 3) {
      fprintf(stderr, "%s is not M,N,K\n", argv[i]);
      status = 2;
      break;
    }
    const foretune_gemm gemm = {.m = m,
                                .n = n,
                                .k = k,
                                .batch = 1,
                                .op = FORETUNE_MM,
                                .dtype = FORETUNE_F16,
                                .layout = FORETUNE_RCR};
    foretune_choice choice;
    if (foretune_select_gemm(selector, &gemm, &choice) != FORETUNE_OK) {
      status = 1;
    } else if (choice.words == NULL) {
      printf("%s - %s\n", argv[i], foretune_reason_text(choice.reason));
    } else {
      char name[256];
      if (foretune_ck_gemm_name(gemm.dtype, gemm.layout, choice.words, choice.word_count, name,
                                sizeof name) == 0) {
        status = 1;
      } else {
        printf("%s %s%s\n", argv[i], name, choice.status == FORETUNE_PICKED ? "" : " (fallback)");
      }
    }
  }
  foretune_selector_close(selector);
  return status;
}
