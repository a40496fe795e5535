#include "foretune/interop/ck/internal/ck_rows.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/dataset/storable.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/known_spaces.h"

namespace foretune {

Result<Fingerprint> ck_fingerprint(std::string_view arch) {
  constexpr std::size_t kMaxArchBytes = 64;
  const bool is_word = std::all_of(arch.begin(), arch.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '+' || c == ':' || c == '.';
  });
  if (arch.empty() || arch.size() > kMaxArchBytes || !is_word) {
    return fail(ErrorCode::kInvalidArgument, quoted(arch, 40),
                " is not the name of an architecture (gfx950)");
  }
  if (auto known = known_device(arch)) {
    return known;
  }
  Fingerprint out;
  out.device = arch;
  out.isa = arch;
  return out;
}

namespace dataset_internal {
namespace {

// Returns the reason why the rules refuse a kernel that ran; nothing when they allow all of them.
std::optional<std::string> refused_kernel(const Dataset& dataset) {
  const auto definition = SpaceDefinition::parse(dataset.header().space_text);
  const auto space = definition ? CompiledSpace::create(*definition)
                                : Result<std::shared_ptr<const CompiledSpace>>(nullptr);
  if (!space || *space == nullptr) {
    return std::nullopt;
  }
  const Hardware& hardware = dataset.header().fingerprint.hardware;
  for (const Dataset::Row& row : dataset.rows()) {
    if (row.outcome == Outcome::kOk) {
      const Support support = (*space)->why_not(dataset.configs()[row.config],
                                                dataset.problems()[row.problem], hardware);
      if (!support) {
        return std::string(support.reason());
      }
    }
  }
  return std::nullopt;
}

constexpr std::string_view kUnknownDevice = "unknown AMD GPU";
constexpr std::string_view kProgramPrefix = "benchmark_";
constexpr std::string_view kConvPrefix = "grouped_conv";
constexpr const char* kRepaired = "a mem kernel, which always pads: its three pad flags are set";

bool is_conv_name(std::string_view kernel) {
  if (kernel.substr(0, kProgramPrefix.size()) == kProgramPrefix) {
    kernel.remove_prefix(kProgramPrefix.size());
  }
  return kernel.substr(0, kConvPrefix.size()) == kConvPrefix;
}

// Sets the pad flags of a mem kernel. Returns true when one changed.
bool repair_pads(Config& config) {
  const auto word = [&](CkGemmParameter parameter) -> std::int32_t& {
    return config.words[static_cast<std::size_t>(parameter)];
  };
  if (word(CkGemmParameter::kPipeline) != static_cast<std::int32_t>(CkPipeline::kMem)) {
    return false;
  }
  bool changed = false;
  for (const CkGemmParameter pad :
       {CkGemmParameter::kPadM, CkGemmParameter::kPadN, CkGemmParameter::kPadK}) {
    changed = changed || word(pad) == 0;
    word(pad) = 1;
  }
  return changed;
}

Status check_same(std::string_view what, std::string_view said, std::string_view named) {
  if (!said.empty() && said != named) {
    return fail(ErrorCode::kMismatch, "its ", what, " is not the one of its kernel's name");
  }
  return {};
}

struct FailureWord {
  std::string_view word;
  Outcome outcome;
  Stage stage;
};
// Words in the messages of failed runs, in the order of the search, and their meaning.
constexpr std::array<FailureWord, 10> kFailureWords{
    {{"not support", Outcome::kUnsupported, Stage::kBind},
     {"unsupported", Outcome::kUnsupported, Stage::kBind},
     {"wrong! arguments", Outcome::kUnsupported, Stage::kBind},
     {"timeout", Outcome::kTimedOut, Stage::kRun},
     {"timed out", Outcome::kTimedOut, Stage::kRun},
     {"verif", Outcome::kWrongResult, Stage::kVerify},
     {"incorrect", Outcome::kWrongResult, Stage::kVerify},
     {"mismatch", Outcome::kWrongResult, Stage::kVerify},
     {"compil", Outcome::kPrepareFailed, Stage::kPrepare},
     {"build", Outcome::kPrepareFailed, Stage::kPrepare}}};

std::pair<Outcome, Stage> failure_of(std::string_view error) {
  const std::string lower = to_lower(error);
  for (const FailureWord& known : kFailureWords) {
    if (lower.find(known.word) != std::string::npos) {
      return {known.outcome, known.stage};
    }
  }
  return error.empty() ? std::pair(Outcome::kUnsupported, Stage::kBind)
                       : std::pair(Outcome::kCrashed, Stage::kRun);
}

double gemm_bytes(const GemmProblem& gemm, DataType output) {
  const auto m = static_cast<double>(gemm.m());
  const auto n = static_cast<double>(gemm.n());
  const auto k = static_cast<double>(gemm.k());
  return (m * k + k * n) * bytes_per_element(gemm.dtype()) + m * n * bytes_per_element(output);
}

// True for a run whose only flaw is a latency that was rounded to 0. Its file marks it as invalid
// although the run is valid.
bool is_only_fast(const CkRun& run) {
  return run.error.empty() && run.figures.latency_ms == 0 && run.figures.tflops.value_or(0) > 0;
}

}  // namespace

std::span<const CkConvSize> ck_conv_sizes() {
  static constexpr std::array<CkConvSize, 19> kSizes{
      {{"N", &ConvSizes::n, true},
       {"C", &ConvSizes::c, true},
       {"K", &ConvSizes::k, true},
       {"G", &ConvSizes::g, true},
       {"Hi", &ConvSizes::hi, true},
       {"Wi", &ConvSizes::wi, true},
       {"Y", &ConvSizes::y, true},
       {"X", &ConvSizes::x, true},
       {"stride_h", &ConvSizes::stride_h, true},
       {"stride_w", &ConvSizes::stride_w, true},
       {"pad_h", &ConvSizes::pad_h, true},
       {"pad_w", &ConvSizes::pad_w, true},
       {"Di", &ConvSizes::di, false},
       {"Z", &ConvSizes::z, false},
       {"stride_d", &ConvSizes::stride_d, false},
       {"pad_d", &ConvSizes::pad_d, false},
       {"dilation_d", &ConvSizes::dilation_d, false},
       {"dilation_h", &ConvSizes::dilation_h, false},
       {"dilation_w", &ConvSizes::dilation_w, false}}};
  return kSizes;
}

std::string ck_layout_tag(std::string_view a, std::string_view b, std::string_view c) {
  std::string out;
  for (const std::string_view word : {a, b, c}) {
    const std::string lower = to_lower(word.substr(0, 3));
    if (lower != "row" && lower != "col") {
      return {};
    }
    out += lower[0];
  }
  return out;
}

Result<CkCollector::Parsed> CkCollector::parse_gemm(const CkRun& run) {
  FORETUNE_TRY(CkGemmKernel kernel, parse_ck_gemm_name(run.kernel));
  FORETUNE_TRY_STATUS(check_same("data type", run.dtype, ck_dtype_name(kernel.dtype)));
  FORETUNE_TRY_STATUS(check_same("layout", run.layout, to_string(kernel.layout)));
  constexpr std::int64_t kMaxSplit = 1 << 20;
  if (run.split_k < 1 || run.split_k > kMaxSplit) {
    return fail(ErrorCode::kCorrupt, "a split_k that makes no sense");
  }
  kernel.config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] =
      static_cast<std::int32_t>(run.split_k);
  const auto gemm = GemmProblem::create({.m = run.gemm.m,
                                         .n = run.gemm.n,
                                         .k = run.gemm.k,
                                         .dtype = kernel.dtype,
                                         .layout = kernel.layout});
  if (!gemm) {
    return fail(ErrorCode::kCorrupt, "sizes that are missing or out of range");
  }
  const bool repaired = repair_pads(kernel.config);
  const auto output = parse_ck_dtype(run.output_dtype);
  return Parsed{gemm->to_problem(), std::move(kernel.config), gemm->flops(),
                output ? gemm_bytes(*gemm, *output) : 0, repaired};
}

Result<CkCollector::Parsed> CkCollector::parse_conv(const CkRun& run) {
  FORETUNE_TRY(CkConvKernel kernel, parse_ck_conv_name(run.kernel));
  FORETUNE_TRY_STATUS(check_same("data type", run.dtype, ck_dtype_name(kernel.dtype)));
  FORETUNE_TRY_STATUS(check_same("direction", run.direction, to_string(kernel.variant)));
  if (!run.conv) {
    return fail(ErrorCode::kCorrupt, "a convolution without its sizes");
  }
  ConvSizes sizes = *run.conv;
  sizes.operation = static_cast<ConvOperation>(kernel.variant);
  sizes.dtype = kernel.dtype;
  if (kernel.spatial_dims < 3 && (sizes.di != 1 || sizes.z != 1)) {
    return fail(ErrorCode::kMismatch, "a depth, for a kernel of fewer dimensions");
  }
  const auto conv = ConvProblem::create(sizes);
  if (!conv) {
    return fail(ErrorCode::kCorrupt, "sizes that are missing or make no convolution");
  }
  return Parsed{conv->to_problem(), std::move(kernel.config), conv->flops(), 0, false};
}

Status CkCollector::open(const ConfigSchema& schema, ProblemType type, const std::string& arch) {
  if (dataset_) {
    if (dataset_->header().problem_type != type) {
      return fail(ErrorCode::kUnsupported, "a file holds GEMMs or convolutions; this is the other");
    }
    if (dataset_->header().config_schema != schema) {
      return fail(ErrorCode::kUnsupported, "a data set holds StreamK's kernels or others; ",
                  "this is the other");
    }
    return {};
  }
  DatasetHeader header;
  header.family = facts_.family;
  header.role = facts_.role;
  header.problem_type = type;
  header.config_schema = schema;
  header.fingerprint = facts_.fingerprint;
  if (header.fingerprint.device.empty()) {
    if (arch.empty()) {
      header.fingerprint.device = kUnknownDevice;
      counter_.note("of an architecture that nothing names", "");
    } else {
      FORETUNE_TRY(header.fingerprint, ck_fingerprint(arch));
    }
  }
  header.space_text = known_rules_of(header.config_schema, header.fingerprint.isa);
  dataset_.emplace(std::move(header));
  return {};
}

Result<std::uint32_t> CkCollector::context_of(const std::string& arch) {
  const Fingerprint& own = dataset_->header().fingerprint;
  Context context{.machine = own.digest(), .device = own.device};
  // The caller's device takes precedence over the file's.
  if (!arch.empty() && facts_.fingerprint.device.empty()) {
    FORETUNE_TRY(const Fingerprint named, ck_fingerprint(arch));
    context = {.machine = named.digest(), .device = named.device};
  }
  if (dataset_->contexts().size() >= kMaxContexts && !dataset_->find_context(context)) {
    return fail(ErrorCode::kUnsupported, "there are too many different architectures");
  }
  return dataset_->intern_context(context);
}

void CkCollector::take_failure(const CkRun& run, Entry& entry) {
  if (entry.reason.empty()) {
    std::tie(entry.outcome, entry.stage) =
        run.is_all_zero ? std::pair(Outcome::kWrongResult, Stage::kVerify) : failure_of(run.error);
    entry.reason = !run.error.empty() ? run.error.substr(0, kMaxReasonBytes)
                   : run.is_all_zero  ? "its output was all zeros"
                                      : "marked as not valid, without a reason";
  }
}

Status CkCollector::take(const CkRun& run, const std::string& place) {
  const bool is_conv = is_conv_name(run.kernel);
  FORETUNE_TRY(Parsed parsed, is_conv ? parse_conv(run) : parse_gemm(run));
  const bool rescued = run.is_valid == false && is_only_fast(run);
  const bool failed = !rescued && (run.is_valid == false || !run.error.empty() || run.is_all_zero);
  RestoredTime time;
  if (!failed) {
    CkFigures figures = run.figures;
    figures.flops = parsed.flops;
    figures.bytes = parsed.bytes;
    FORETUNE_TRY(time, restore_time(figures));
    if (!(static_cast<float>(time.time_ns) > 0) || time.time_ns > static_cast<double>(kLongestNs)) {
      return fail(ErrorCode::kCorrupt, "a time or a rate that makes no sense");
    }
  }
  const ConfigSchema& schema = is_conv ? ck_grouped_conv_schema()
                               : parsed.config.schema == ck_gemm_streamk_schema().id()
                                   ? ck_gemm_streamk_schema()
                                   : ck_gemm_schema();
  FORETUNE_TRY_STATUS(open(schema, parsed.problem.type(), run.arch));
  FORETUNE_TRY(const std::uint32_t context, context_of(run.arch));
  const Key key{dataset_->intern_problem(parsed.problem), dataset_->intern_config(parsed.config),
                context};
  const auto [found, is_new] = index_.emplace(key, entries_.size());
  if (is_new) {
    entries_.emplace_back(key, Entry{});
  } else {
    counter_.note("a repeat of a problem and kernel, merged with the others by their median",
                  place);
  }
  Entry& entry = entries_[found->second].second;
  if (failed) {
    take_failure(run, entry);
  } else {
    entry.times_ns.push_back(time.time_ns);
    entry.relative_error = std::max(entry.relative_error, time.relative_error);
  }
  if (parsed.repaired) {
    counter_.note(kRepaired, place);
  }
  if (rescued) {
    counter_.note("marked as not valid only because its latency was rounded to 0", place);
  }
  if (time.figures_disagree) {
    counter_.note("its latency and its rates disagree; the latency is taken", place);
  } else if (run.figures.latency_ms == 0 && time.from_rate) {
    counter_.note("its latency of 0.00 was restored from its rate", place);
  }
  return {};
}

void CkCollector::add(const CkRun& run, const std::string& place) {
  counter_.read();
  if (const Status taken = take(run, place); !taken) {
    counter_.drop(taken.error().message, place);
  } else {
    counter_.keep();
  }
}

void CkCollector::add_broken(const std::string& reason, const std::string& place) {
  counter_.read();
  counter_.drop(reason, place);
}

void CkCollector::add_row(const Key& key, const Entry& entry) {
  Dataset::Row row;
  row.problem = std::get<0>(key);
  row.config = std::get<1>(key);
  row.context = static_cast<std::uint16_t>(std::get<2>(key));
  row.flags = kFlagImported;
  if (entry.times_ns.empty()) {
    row.outcome = entry.outcome;
    row.stage = entry.stage;
    row.reason = dataset_->intern_reason(entry.reason);
  } else {
    row.time_ns = static_cast<float>(median(entry.times_ns));
    row.spread = static_cast<float>(std::max(
        entry.relative_error, entry.times_ns.size() > 1 ? relative_spread(entry.times_ns) : 0.0));
    row.samples = static_cast<std::uint16_t>(std::min<std::size_t>(entry.times_ns.size(), 65535));
  }
  dataset_->add_row(row);
}

Result<Dataset> CkCollector::finish(ImportReport* report) {
  if (!dataset_) {
    FORETUNE_TRY_STATUS(counter_.finish(report));
    FORETUNE_TRY_STATUS(open(ck_gemm_schema(), kGemmProblem, ""));
  }
  if (const Status status = check_header(dataset_->header()); !status) {
    return tl::unexpected<Error>(status.error());
  }
  for (const auto& [key, entry] : entries_) {
    add_row(key, entry);
  }
  // Newer kernels may keep other rules. Rules that are wrong must not rule out kernels that ran.
  if (const auto refused = refused_kernel(*dataset_)) {
    counter_.note(concat("without the rules of the architecture, which refuse a kernel that ran: ",
                         *refused));
    dataset_->mutable_header().space_text.clear();
  }
  FORETUNE_TRY_STATUS(counter_.finish(report));
  return *std::move(dataset_);
}

}  // namespace dataset_internal
}  // namespace foretune
