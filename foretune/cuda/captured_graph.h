// Work that a stream captured once and that runs as often as wanted, with no host work between its
// kernels.
//
//   FORETUNE_TRY(const CapturedGraph graph, CapturedGraph::capture(api, stream, enqueue));
//   FORETUNE_TRY_STATUS(graph.launch(stream));
//
// Thread safety: one thread at a time. Cost: capturing and instantiating take about 100 us of the
// host, a launch about 10 us.
#pragma once

#include <functional>

#include "foretune/base/result.h"
#include "foretune/cuda/driver_api.h"

namespace foretune::cuda {

class CapturedGraph {
 public:
  // Captures what `enqueue` puts on `stream`, which is not the default stream. Other threads may
  // use the device freely meanwhile. `api` outlives the graph. Errors: those of `enqueue`; kIo when
  // the driver refuses.
  static Result<CapturedGraph> capture(const DriverApi& api, Stream stream,
                                       const std::function<Status()>& enqueue);
  CapturedGraph(CapturedGraph&& other) noexcept;
  CapturedGraph& operator=(CapturedGraph&& other) noexcept;
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  // Launched work has ended by then.
  ~CapturedGraph();

  // Enqueues the work on any stream of the device. Errors: kIo when the driver refuses.
  [[nodiscard]] Status launch(Stream stream) const;

 private:
  CapturedGraph(const DriverApi& api, GraphExec exec) : api_(&api), exec_(exec) {}
  const DriverApi* api_;
  GraphExec exec_;
};

}  // namespace foretune::cuda
