// Matrix products of cpu-gemm and of the libraries that one would use instead, timed in turns. Two
// classes, each compared within itself:
//   planned   all work that a product needs once is done before: our config is bound with its
//             workspace, libraries create primitives or compile kernels
//   called    a whole call as programs make it: foretune_sgemm beside cblas_sgemm
// Thread safety: one thread; contenders use their configured number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/gemm_peers.h"
#include "bench/shape_classes.h"
#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/select.h"

namespace foretune {

// A product of a shape set.
struct Shape {
  GemmProblem problem;
  std::string regime;
  std::vector<bench::ShapeClass> classes;
  [[nodiscard]] std::string text() const;  // 8x3000x1000 rrr
};
// Reads shape sets with a column `regime`; commas separate their paths. `trained` may be null.
Result<std::vector<Shape>> read_shapes(const std::string& paths,
                                       const bench::TrainedShapes* trained);

// Seconds of one product: medians of the rounds.
struct ShapeResult {
  double ours_s = 0;
  double selected_s = 0;  // the selector's pick, planned; 0 without a model
  double called_s = 0;    // foretune_sgemm
  // The highest of the probes between the rounds of this shape, because a core's multiply-add rate
  // depends on its recent work.
  double peak_gflops = 0;
  std::map<std::string, double> planned_s;  // by peer's name
  std::map<std::string, double> calls_s;
  std::map<std::string, std::string> library;  // of a peer's name
};

// Returns the name of the fastest peer, among those of `library` unless that is empty. Empty when
// there is none.
std::string fastest(const std::map<std::string, double>& seconds, const ShapeResult& result,
                    const std::string& library = {});

struct Contest {
  const Family& family;
  Peers& peers;
  const Selector* selector = nullptr;  // may be null
  int threads = 1;
  int rounds = 15;
};

// Checks every contender's first result against the reference, each with a poisoned output; a wrong
// one is an error. Then times all in turns.
Result<ShapeResult> measure_shape(const Contest& contest, const Shape& shape, const Config& winner);

}  // namespace foretune
