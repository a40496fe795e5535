/* Selects for a problem of a plug-in's type, in C: select_c PLUGIN MODEL PROBLEM */
#include <stdio.h>

#include "foretune/select/foretune.h"

int main(int argc, char** argv) {
  foretune_selector* selector = NULL;
  char message[256] = "";
  if (argc != 4) {
    fprintf(stderr, "usage: select_c PLUGIN MODEL PROBLEM\n");
    return 2;
  }
  foretune_choice choice;
  if (foretune_load_plugin(argv[1], message, sizeof message) != FORETUNE_OK ||
      foretune_selector_open(argv[2], &selector, message, sizeof message) != FORETUNE_OK ||
      foretune_select_problem(selector, argv[3], &choice, message, sizeof message) != FORETUNE_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  char text[256];
  foretune_config_text(selector, choice.candidate, text, sizeof text);
  printf("%s: %s\n", choice.status == FORETUNE_PICKED ? "picked" : "fallback", text);
  foretune_selector_close(selector);
  return 0;
}
