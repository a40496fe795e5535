#include "foretune/families/network_cpu/network_cpu.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/base/text.h"
#include "foretune/families/network_cpu/network_data.h"
#include "foretune/families/network_cpu/network_space.h"
#include "foretune/graph/quality.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/run/plan.h"
#include "foretune/graph/task.h"
#include "foretune/kernels/cpu_limits.h"
#include "foretune/problem/network/network_problem.h"
#include "foretune/problem/payload_store.h"

namespace foretune {

namespace {

using network_cpu::Judges;
using network_cpu::NetworkData;

constexpr std::string_view kNetworkCpuName = "network-cpu";
constexpr std::string_view kNetworkCpuDescription =
    "a neural network on this CPU, whose layers may compute less";
constexpr std::string_view kQosTune = "qos_tune";
constexpr std::string_view kQosTest = "qos_test";
// Kernels of a layer that are timed before a plan is ready.
constexpr int kMeasureTop = 12;

Result<graph::Variants> variants_of(const graph::Network& network, const Config& config) {
  graph::Variants variants;
  const std::vector<const graph::Node*> layers = graph::layers_of(network);
  if (layers.size() != config.words.size()) {
    return fail(ErrorCode::kInvalidArgument, "a config has a knob for each of the ", layers.size(),
                " layers, not ", config.words.size());
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (config.words[i] != 0) {
      FORETUNE_TRY(variants[layers[i]->name], graph::variant_of_knob(config.words[i]));
    }
  }
  return variants;
}

class NetworkRun final : public Run {
 public:
  NetworkRun(std::unique_ptr<graph::NetworkPlan> plan, graph::Variants variants, NetworkData& data)
      : plan_(std::move(plan)), variants_(std::move(variants)), data_(data) {}

  void run() override {
    data_.expect_exact(variants_.empty());
    if (const Status status = plan_->run(data_.inputs(), data_.outputs()); !status && !failure_) {
      failure_ = RunFailure{RunFailure::Kind::kCrashed, status.error().message};
    }
  }
  std::optional<RunFailure> failure() const override { return failure_; }
  std::vector<MetricValue> metrics() override {
    return {{kWorkspaceBytes, static_cast<double>(plan_->memory_bytes()), 0, 1}};
  }
  Result<std::vector<MetricValue>> evaluate(std::span<const std::string> names) override {
    std::vector<MetricValue> values;
    for (const std::string& name : names) {
      if (name != kQosTune && name != kQosTest) {
        return fail(ErrorCode::kUnsupported, "a network has no metric ", foretune::quoted(name));
      }
      FORETUNE_TRY(const double quality,
                   data_.quality(variants_, name == kQosTest ? Judges::kTest : Judges::kTuning));
      values.emplace_back(name, quality, 0, 1);
    }
    return values;
  }

 private:
  std::unique_ptr<graph::NetworkPlan> plan_;
  graph::Variants variants_;
  NetworkData& data_;
  std::optional<RunFailure> failure_;
};

class NetworkArtifact final : public Artifact {
 public:
  explicit NetworkArtifact(Config config) : config_(std::move(config)) {}

  Result<std::unique_ptr<Run>> bind(const Problem& problem, ProblemData& data) override {
    auto* const own = dynamic_cast<NetworkData*>(&data);
    if (own == nullptr) {
      return fail(ErrorCode::kMismatch, "the data are not those of '", problem.text(), "'");
    }
    FORETUNE_TRY(graph::Variants variants, variants_of(own->task().network, config_));
    FORETUNE_TRY(auto plan, graph::NetworkPlan::create(own->task().network, own->executor(),
                                                       {.images = own->images(),
                                                        .variants = variants,
                                                        .calibration = own->ranges()}));
    return std::make_unique<NetworkRun>(std::move(plan), std::move(variants), *own);
  }

 private:
  Config config_;
};

struct NetworkOptions {
  std::vector<std::int32_t> knobs;
  std::int64_t tuning_images = 0;
  const graph::QualityMetric* metric = &graph::accuracy_quality();
};

class NetworkCpu final : public Family {
 public:
  NetworkCpu(FamilyInfo info, NetworkOptions options, std::shared_ptr<PayloadStore> payloads)
      : info_(std::move(info)), options_(std::move(options)), payloads_(std::move(payloads)) {}

  const FamilyInfo& info() const override { return info_; }

  Support supports(const Problem& problem) const override {
    if (problem.type() != kNetworkProblem) {
      return Support::no("'", problem.text(), "' is not a network");
    }
    if (!problem.has_payload()) {
      return Support::no(
          "only the sizes of the network are known: name its task "
          "(payload=@FILE, --payloads DIR)");
    }
    return Support::yes();
  }

  Result<std::unique_ptr<Space>> space(const Problem& problem) const override {
    FORETUNE_TRY(const std::shared_ptr<const graph::Task> task, task_of(problem));
    return std::make_unique<NetworkSpace>(task->network, options_.knobs);
  }

  // The exact network, then integers in all layers.
  std::vector<Config> default_configs(const Problem& problem) const override {
    const auto layers =
        static_cast<std::size_t>(problem.field(static_cast<std::size_t>(NetworkField::kLayers)));
    const std::uint64_t schema = network_schema().id();
    return {Config{schema, Config::Words(layers, 0)},
            Config{schema, Config::Words(layers, graph::knob_of({.type = DataType::kI8}))}};
  }

  std::string artifact_key(const Problem& problem, const Config& config) const override {
    return concat(problem.text(), " ", to_text(network_schema(), config));
  }

  Result<std::unique_ptr<Artifact>> prepare(const Problem& problem,
                                            const Config& config) const override {
    FORETUNE_TRY(const std::unique_ptr<Space> space, this->space(problem));
    if (const Support legal = space->why_not(config); !legal) {
      return fail(ErrorCode::kUnsupported, legal.reason());
    }
    return std::make_unique<NetworkArtifact>(config);
  }

  Result<std::unique_ptr<ProblemData>> make_data(const Problem& problem,
                                                 std::uint64_t /*seed*/) const override {
    FORETUNE_TRY(std::shared_ptr<const graph::Task> task, task_of(problem));
    FORETUNE_TRY(auto executor, graph::Executor::create(
                                    {.threads = info_.max_threads, .measure_top = kMeasureTop}));
    FORETUNE_TRY(std::unique_ptr<ProblemData> data,
                 NetworkData::create(
                     std::move(task), std::move(executor),
                     {.images = problem.field(static_cast<std::size_t>(NetworkField::kImages)),
                      .tuning_images = options_.tuning_images,
                      .metric = options_.metric}));
    return data;
  }

 private:
  // Returns the task of a problem, which is read once.
  Result<std::shared_ptr<const graph::Task>> task_of(const Problem& problem) const {
    if (const Support support = supports(problem); !support) {
      return fail(ErrorCode::kUnsupported, support.reason());
    }
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const graph::Task>& known = tasks_[problem.payload()];
    if (known == nullptr) {
      FORETUNE_TRY(const std::shared_ptr<const Payload> payload,
                   payloads_->load(problem.payload()));
      Result<graph::Task> task = graph::parse_task(payload->bytes());
      if (!task) {
        return fail_because(task.error(), payload->path());
      }
      known = std::make_shared<const graph::Task>(*std::move(task));
    }
    return known;
  }

  FamilyInfo info_;
  NetworkOptions options_;
  std::shared_ptr<PayloadStore> payloads_;
  mutable ForkSafeMutex mutex_;
  mutable std::map<Digest, std::shared_ptr<const graph::Task>> tasks_;  // under the mutex
};

}  // namespace

Result<std::unique_ptr<Family>> create_network_cpu(const FamilyOptions& options) {
  NetworkOptions own;
  std::string_view catalogue = "default";
  std::vector<std::pair<std::string, std::string>> limits;
  for (const auto& [name, value] : options.parameters) {
    if (name == "knobs") {
      catalogue = value;
    } else if (name == "quality") {
      FORETUNE_TRY(own.metric, graph::find_quality(value));
    } else if (name == "tuning_images") {
      const auto count = parse_int(value);
      if (!count || *count < 1) {
        return fail(ErrorCode::kInvalidArgument, "tuning_images is a number from 1, not ",
                    foretune::quoted(value));
      }
      own.tuning_images = *count;
    } else {
      limits.emplace_back(name, value);
    }
  }
  FORETUNE_TRY(own.knobs, graph::knob_catalogue(catalogue));
  FamilyInfo info;
  info.fingerprint = options.fingerprint;
  FORETUNE_TRY_STATUS(
      apply_cpu_limits(kNetworkCpuName, options.threads, limits, info.fingerprint.hardware));
  info.name = kNetworkCpuName;
  info.description = kNetworkCpuDescription;
  info.problem_type = kNetworkProblem;
  info.config_schema = network_schema();
  info.feature_table = "sequence-words";
  info.metrics = {metric_info(kWorkspaceBytes), metric_info(kQosTune), metric_info(kQosTest)};
  info.max_threads = usable_threads(info.fingerprint.hardware);
  FORETUNE_TRY(std::shared_ptr<PayloadStore> payloads, PayloadStore::open(options.payload_folders));
  return std::make_unique<NetworkCpu>(std::move(info), std::move(own), std::move(payloads));
}

const FamilyEntry& network_cpu_family() {
  static const FamilyEntry entry{.name = std::string(kNetworkCpuName),
                                 .description = std::string(kNetworkCpuDescription),
                                 .available = [](const FamilyOptions&) { return Support::yes(); },
                                 .create = &create_network_cpu};
  return entry;
}

}  // namespace foretune
