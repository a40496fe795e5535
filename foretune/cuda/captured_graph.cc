#include "foretune/cuda/captured_graph.h"

#include <utility>

namespace foretune::cuda {

Result<CapturedGraph> CapturedGraph::capture(const DriverApi& api, Stream stream,
                                             const std::function<Status()>& enqueue) {
  FORETUNE_TRY_STATUS(
      api.check(api.begin_capture(stream, kCaptureThreadLocal), "cuStreamBeginCapture"));
  const Status captured = enqueue();
  Graph graph = nullptr;
  const int ended = api.end_capture(stream, &graph);
  GraphExec exec = nullptr;
  const int made =
      captured && ended == kDriverSuccess ? api.graph_instantiate(&exec, graph, 0) : kDriverSuccess;
  if (graph != nullptr) {
    api.graph_destroy(graph);
  }
  FORETUNE_TRY_STATUS(captured);
  FORETUNE_TRY_STATUS(api.check(ended, "cuStreamEndCapture"));
  FORETUNE_TRY_STATUS(api.check(made, "cuGraphInstantiateWithFlags"));
  return CapturedGraph(api, exec);
}

CapturedGraph::CapturedGraph(CapturedGraph&& other) noexcept
    : api_(other.api_), exec_(std::exchange(other.exec_, nullptr)) {}

CapturedGraph& CapturedGraph::operator=(CapturedGraph&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(exec_, other.exec_);
  return *this;
}

CapturedGraph::~CapturedGraph() {
  if (exec_ != nullptr) {
    api_->graph_exec_destroy(exec_);
  }
}

Status CapturedGraph::launch(Stream stream) const {
  return api_->check(api_->graph_launch(exec_, stream), "cuGraphLaunch");
}

}  // namespace foretune::cuda
