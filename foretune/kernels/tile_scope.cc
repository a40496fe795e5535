#include "foretune/kernels/tile_scope.h"

#include "foretune/kernels/kernels_isa.h"

namespace foretune {

TileScope::TileScope(bool in_tiles) : in_tiles_(in_tiles) {
  if (in_tiles_) {
    avx512_begin_tiles();
  }
}

TileScope::~TileScope() {
  if (in_tiles_) {
    avx512_end_tiles();
  }
}

}  // namespace foretune
