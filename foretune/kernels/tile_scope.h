// A thread's use of the matrix tiles of AMX. Kernels whose TapKernelSet says `in_tiles` load what
// the tiles look like when that changes, and rely on nobody else having changed it since: they are
// called while a TileScope lives.
//
//   const TileScope scope(kernels->in_tiles);
//   kernel(call);
//
// Thread safety: a scope belongs to the thread that made it. Cost: none where `in_tiles` is false;
// else that of loading a configuration, about 100 ns.
#pragma once

namespace foretune {

class TileScope {
 public:
  explicit TileScope(bool in_tiles);
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
  TileScope(TileScope&&) = delete;
  TileScope& operator=(TileScope&&) = delete;

 private:
  bool in_tiles_;
};

}  // namespace foretune
