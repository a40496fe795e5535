#include "foretune/space/schemas/simulated.h"

namespace foretune {

const ConfigSchema& null_schema() {
  static const ConfigSchema kSchema{
      .name = "null",
      .version = 1,
      .parameters = {{"block_m", {}}, {"block_n", {}}, {"block_k", {}}, {"unroll", {}}}};
  return kSchema;
}

}  // namespace foretune
