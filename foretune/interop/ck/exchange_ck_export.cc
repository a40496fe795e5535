// Exports data sets in the columns of CK Tile's own data sets.
#include <string>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/ck/exchange_ck.h"
#include "foretune/interop/tables/internal/csv_columns.h"
#include "foretune/interop/tables/internal/exchange_io.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::dataset_internal {
namespace {

// StreamK's reduction stands before run_id.
constexpr std::string_view kGemmHeader =
    "op_type,dtype,layout,arch,kernel_name,m,n,k,split_k,measured_tflops,latency_ms,"
    "bandwidth_gb_s,is_valid,tile_m,tile_n,tile_k,warp_m,warp_n,warp_k,warp_tile_m,warp_tile_n,"
    "warp_tile_k,pipeline,scheduler,epilogue,pad_m,pad_n,pad_k,persistent,vec_a,vec_b,vec_c";
// Their names of a tile's sides say something else: block_size is tile_m, gemm_m_per_block tile_n,
// gemm_n_per_block tile_k.
constexpr std::string_view kConvHeader =
    "op_type,variant,dtype,arch,kernel,kernel_name,N,C,K,G,Di,Hi,Wi,Z,Y,X,stride_d,stride_h,"
    "stride_w,pad_d,pad_h,pad_w,dilation_d,dilation_h,dilation_w,latency_ms,tflops,is_valid,"
    "ndim_spatial,block_size,gemm_m_per_block,gemm_n_per_block,pipeline,wave_mode,has_dsb,has_si";

std::string_view python_bool(bool value) { return value ? "True" : "False"; }

// The figures of speed in a row of any operation.
struct Speed {
  double latency_ms = 0;
  double tflops = 0;
  double gb_s = 0;
  bool is_valid = false;
};

Speed speed_of(const Dataset::Row& row, double flops, double bytes) {
  if (!row.is_timed()) {
    return {};
  }
  const double time_ns = short_double(row.time_ns);
  return {time_ns * 1e-6, flops / (time_ns * 1e3), bytes / time_ns, true};
}

class CkExporter {
 public:
  explicit CkExporter(const Dataset& dataset)
      : dataset_(dataset), run_id_(hex_text(dataset.fingerprint().high)) {}

  Result<std::string> run(ImportReport* report) {
    const bool is_conv = dataset_.header().problem_type == kConvProblem;
    const ConfigSchema& own = dataset_.header().config_schema;
    const bool is_streamk = own == ck_gemm_streamk_schema();
    const ConfigSchema& schema = is_conv      ? ck_grouped_conv_schema()
                                 : is_streamk ? ck_gemm_streamk_schema()
                                              : ck_gemm_schema();
    if (own != schema) {
      return fail(ErrorCode::kUnsupported, "CK Tile's columns hold ", schema.name,
                  " configs only, not ", own.name);
    }
    out_ = concat(is_conv ? kConvHeader : kGemmHeader, is_streamk ? ",reduction" : "", ",run_id\n");
    ImportCounter counter;
    for (std::size_t i = 0; i < dataset_.size(); ++i) {
      const Dataset::Row& row = dataset_.rows()[i];
      const std::string place = concat("row ", i);
      counter.read();
      const Status added =
          row.outcome == Outcome::kCensored
              ? Status(fail(ErrorCode::kUnsupported, "a bound, which their format cannot hold"))
          : is_conv ? add_conv(row)
                    : add_gemm(row);
      if (!added) {
        counter.drop(added.error().message, place);
        continue;
      }
      counter.keep();
      if (row.reason != 0) {
        counter.note("without its reason, for which there is no column", place);
      }
    }
    FORETUNE_TRY_STATUS(counter.finish(report));
    return std::move(out_);
  }

 private:
  // Returns the architecture if the row's context determines it.
  [[nodiscard]] std::string arch_of(const Dataset::Row& row) const {
    const Fingerprint& own = dataset_.header().fingerprint;
    const std::string& device = dataset_.contexts()[row.context].device;
    std::string arch = device == own.device ? own.isa : std::string();
    if (arch.empty()) {
      const auto known = known_device(device);
      arch = known ? known->isa : device;
    }
    return ck_fingerprint(arch) ? arch : std::string();
  }

  Status add_gemm(const Dataset::Row& row) {
    const Config& config = dataset_.configs()[row.config];
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(dataset_.problems()[row.problem]));
    if (gemm.operation() != GemmOperation::kMm) {
      return fail(ErrorCode::kUnsupported,
                  "a GEMM with a bias or a batch, for which they have "
                  "no column");
    }
    if (!gemm.payload().is_zero()) {
      return fail(ErrorCode::kUnsupported,
                  "a GEMM with weights from a file, for which they have no column");
    }
    FORETUNE_TRY(const std::string name, ck_gemm_name({gemm.dtype(), gemm.layout(), config}));
    const Speed speed = speed_of(row, gemm.flops(), gemm.bytes());
    out_ +=
        concat(config.schema == ck_gemm_streamk_schema().id() ? "gemm_streamk," : "gemm_universal,",
               ck_dtype_name(gemm.dtype()), ",", to_string(gemm.layout()), ",", arch_of(row), ",",
               name, ",", gemm.m(), ",", gemm.n(), ",", gemm.k(), ",",
               config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)], ",", speed.tflops,
               ",", speed.latency_ms, ",", speed.gb_s, ",", python_bool(speed.is_valid));
    const ConfigSchema& schema = dataset_.header().config_schema;
    for (std::size_t i = 0; i < config.words.size(); ++i) {
      if (i == static_cast<std::size_t>(CkGemmParameter::kSplitK)) {
        continue;
      }
      out_ += ",";
      if (!schema.parameters[i].labels.empty()) {
        out_ += schema.parameters[i].labels[static_cast<std::size_t>(config.words[i])];
      } else if (i >= static_cast<std::size_t>(CkGemmParameter::kPadM) &&
                 i <= static_cast<std::size_t>(CkGemmParameter::kPersistent)) {
        out_ += python_bool(config.words[i] != 0);
      } else {
        out_ += concat(config.words[i]);
      }
    }
    out_ += concat(",", run_id_, "\n");
    return {};
  }

  Status add_conv(const Dataset::Row& row) {
    FORETUNE_TRY(const ConvProblem conv, ConvProblem::from(dataset_.problems()[row.problem]));
    const ConvSizes& sizes = conv.sizes();
    FORETUNE_TRY(const std::string name,
                 ck_conv_name({.variant = static_cast<CkConvVariant>(sizes.operation),
                               .dtype = sizes.dtype,
                               .spatial_dims = conv.is_3d() ? 3 : 2,
                               .config = dataset_.configs()[row.config]}));
    const Speed speed = speed_of(row, conv.flops(), conv.bytes());
    const auto variant = static_cast<CkConvVariant>(sizes.operation);
    out_ += concat("grouped_conv,", to_string(variant), ",", ck_dtype_name(sizes.dtype), ",",
                   arch_of(row), ",", name, ",", name);
    for (const std::int64_t size :
         {sizes.n, sizes.c, sizes.k, sizes.g, sizes.di, sizes.hi, sizes.wi, sizes.z, sizes.y,
          sizes.x, sizes.stride_d, sizes.stride_h, sizes.stride_w, sizes.pad_d, sizes.pad_h,
          sizes.pad_w, sizes.dilation_d, sizes.dilation_h, sizes.dilation_w}) {
      out_ += concat(",", size);
    }
    out_ += concat(",", speed.latency_ms, ",", speed.tflops, ",", python_bool(speed.is_valid), ",",
                   conv.is_3d() ? 3 : 2);
    add_conv_parameters(dataset_.configs()[row.config]);
    out_ += concat(",", run_id_, "\n");
    return {};
  }

  // Where a name has no wave mode, their reader takes the kernel for one of intrawave.
  void add_conv_parameters(const Config& config) {
    const auto word = [&](CkConvParameter parameter) {
      return config.words[static_cast<std::size_t>(parameter)];
    };
    const auto label = [&](CkConvParameter parameter) -> const std::string& {
      return ck_grouped_conv_schema()
          .parameters[static_cast<std::size_t>(parameter)]
          .labels[static_cast<std::size_t>(word(parameter))];
    };
    out_ += concat(",", word(CkConvParameter::kTileM), ",", word(CkConvParameter::kTileN), ",",
                   word(CkConvParameter::kTileK), ",", label(CkConvParameter::kPipeline), ",",
                   word(CkConvParameter::kWaveMode) == 0 ? std::string("intrawave")
                                                         : label(CkConvParameter::kWaveMode),
                   ",", word(CkConvParameter::kDsb), ",", word(CkConvParameter::kSi));
  }

  const Dataset& dataset_;
  std::string run_id_;
  std::string out_;
};

}  // namespace

Result<std::string> export_ck_csv_text(const Dataset& dataset, ImportReport* report) {
  return CkExporter(dataset).run(report);
}

}  // namespace foretune::dataset_internal
