/* Selects for a problem of a type that the C interface has no struct for. */
#include <stdio.h>
#include <string.h>

#include "foretune/select/foretune.h"

int main(int argc, char** argv) {
  char message[256] = "";
  foretune_selector* selector = NULL;
  foretune_choice by_text;
  foretune_choice by_fields;
  const int64_t fields[3] = {4096, 2, 1};
  if (argc != 2 ||
      foretune_selector_open(argv[1], &selector, message, sizeof message) != FORETUNE_OK ||
      strcmp(foretune_problem_type(selector), "stencil") != 0 ||
      foretune_select_problem(selector, "stencil cells=4096 radius=2 border=wrap", &by_text,
                              message, sizeof message) != FORETUNE_OK ||
      foretune_select_fields(selector, fields, 3, &by_fields) != FORETUNE_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  printf("%s by text, %s by fields\n", by_text.status == FORETUNE_PICKED ? "picked" : "abstained",
         by_fields.candidate == by_text.candidate ? "the same" : "another");
  foretune_selector_close(selector);
  return by_text.status == FORETUNE_PICKED && by_fields.candidate == by_text.candidate ? 0 : 1;
}
