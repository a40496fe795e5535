// Bindings for models that Composable Kernel's heuristics trained, and for the features of its
// engines.
#include "foretune/interop/ck/foreign_models.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/interop/ck/ck_engine.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/ck/model_directory.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Predicts one target for kernels given by name. `split_k` has one entry per kernel of a GEMM.
Result<std::vector<double>> predict_foreign(const ForeignModels& models,
                                            const std::string& target_name,
                                            const std::string& problem_text,
                                            const std::vector<std::string>& kernels,
                                            const std::vector<std::int32_t>& split_k) {
  FORETUNE_TRY(const ModelDirectory::Target* const target, models.find_target(target_name));
  FORETUNE_TRY(const Problem problem, Problem::parse(problem_text));
  if (problem.type() != models.problem_type()) {
    return fail(ErrorCode::kMismatch, "the models are not for problems like '", problem_text, "'");
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    FORETUNE_TRY(Config config, models.parse_kernel(kernels[i]));
    if (models.problem_type() == kGemmProblem) {
      config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] = split_k[i];
    }
    FORETUNE_TRY(const double value, models.predict(*target, problem, config));
    out.push_back(value);
  }
  return out;
}

// Opens models with the numbers that an engine has for the device, a JSON object, in place of those
// in the directory; "" keeps these.
Result<ForeignModels> open_models(const std::string& path, const std::string& hardware) {
  if (hardware.empty()) {
    return ForeignModels::open(path);
  }
  FORETUNE_TRY(ModelDirectory directory, read_model_directory(path));
  directory.hardware_json = hardware;
  return ForeignModels::create(std::move(directory));
}

// Predicts a target for rows of features in the order of the directory.
Result<std::vector<double>> predict_rows(const ModelDirectory& directory,
                                         const std::string& target_name, const Rows& rows) {
  const std::size_t width = directory.feature_names.size();
  if (rows.shape(1) != width) {
    return fail(ErrorCode::kMismatch, "the models have ", width, " features, the rows ",
                rows.shape(1));
  }
  for (const ModelDirectory::Target& target : directory.targets) {
    if (target.name != target_name) {
      continue;
    }
    std::vector<double> out;
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
      out.push_back(foretune::predict(target, std::span(rows.data() + i * width, width)));
    }
    return out;
  }
  return fail(ErrorCode::kNotFound, "there is no model for '", target_name, "'");
}

// Returns names and categories of an engine's features in its order.
std::pair<std::vector<std::string>, std::vector<std::string>> engine_columns(
    const std::string& table_name) {
  const FeatureTable& table = *checked(find_feature_table(table_name));
  std::vector<std::string> names;
  std::vector<std::string> categories;
  for (const std::uint16_t column : foreign_order(table)) {
    const FeatureInfo& info = table.columns()[column];
    names.emplace_back(info.name);
    if (info.is_categorical) {
      categories.emplace_back(info.name);
    }
  }
  return {std::move(names), std::move(categories)};
}

// Returns the features [kernel, feature] of kernels by name, in the order of the engine.
Result<std::vector<double>> engine_rows(const FeatureTable& table, const std::string& hardware_json,
                                        const std::string& problem_text,
                                        const std::vector<std::string>& kernels,
                                        const std::vector<std::int32_t>& split_k) {
  FORETUNE_TRY(const Hardware hardware, with_engine_hardware(Hardware(), hardware_json));
  FORETUNE_TRY(const Problem problem, Problem::parse(problem_text));
  const std::vector<std::uint16_t> order = foreign_order(table);
  std::vector<double> features(table.columns().size());
  std::vector<double> out;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    Config config;
    const ConfigSchema* schema = &ck_grouped_conv_schema();
    if (problem.type() == kConvProblem) {
      FORETUNE_TRY(CkConvKernel kernel, parse_ck_conv_name(kernels[i]));
      config = std::move(kernel.config);
    } else {
      FORETUNE_TRY(CkGemmKernel kernel, parse_ck_gemm_name(kernels[i]));
      config = std::move(kernel.config);
      config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] = split_k[i];
      schema = &ck_gemm_schema();
    }
    if (!table.supports(problem.type(), *schema) || config.schema != schema->id()) {
      return fail(ErrorCode::kMismatch, "the engine of ", table.name(), " does not describe ",
                  kernels[i]);
    }
    feature_row(table, problem, hardware, config, features);
    for (const std::uint16_t column : order) {
      out.push_back(features[column]);
    }
  }
  return out;
}

// Returns the config of a kernel as text.
Result<std::string> config_of_kernel(const std::string& name, std::int32_t split_k) {
  if (auto gemm = parse_ck_gemm_name(name)) {
    gemm->config.words[static_cast<std::size_t>(CkGemmParameter::kSplitK)] = split_k;
    const ConfigSchema& schema =
        gemm->config.schema == ck_gemm_schema().id() ? ck_gemm_schema() : ck_gemm_streamk_schema();
    return to_text(schema, gemm->config);
  }
  FORETUNE_TRY(const CkConvKernel conv, parse_ck_conv_name(name));
  return to_text(ck_grouped_conv_schema(), conv.config);
}

}  // namespace

void bind_foreign_models(nb::module_& module) {
  nb::class_<ForeignModels>(module, "ForeignModels")
      .def_prop_ro("targets", &ForeignModels::target_names)
      .def_prop_ro("op_type", [](const ForeignModels& self) { return self.directory().op_type; })
      .def_prop_ro("direction",
                   [](const ForeignModels& self) { return self.directory().direction; })
      .def_prop_ro("dtype", [](const ForeignModels& self) { return self.directory().dtype; })
      .def_prop_ro("arch", [](const ForeignModels& self) { return self.directory().arch; })
      .def(
          "predict",
          [](const ForeignModels& self, const std::string& target, const std::string& problem,
             const std::vector<std::string>& kernels, const std::vector<std::int32_t>& split_k) {
            return array(checked(without_lock(
                [&] { return predict_foreign(self, target, problem, kernels, split_k); })));
          },
          nb::arg("target"), nb::arg("problem"), nb::arg("kernels"), nb::arg("split_k"));
  module.def(
      "open_foreign_models",
      [](const std::string& path, const std::string& hardware) {
        return checked(open_models(path, hardware));
      },
      nb::arg("path"), nb::arg("hardware") = "");
  nb::class_<ModelDirectory>(module, "ModelDirectory")
      .def_ro("op_type", &ModelDirectory::op_type)
      .def_ro("direction", &ModelDirectory::direction)
      .def_ro("dtype", &ModelDirectory::dtype)
      .def_ro("arch", &ModelDirectory::arch)
      .def_ro("feature_names", &ModelDirectory::feature_names)
      .def_ro("encoding_version_json", &ModelDirectory::encoding_version_json)
      .def_prop_ro("targets",
                   [](const ModelDirectory& self) {
                     std::vector<std::string> names;
                     for (const ModelDirectory::Target& target : self.targets) {
                       names.push_back(target.name);
                     }
                     return names;
                   })
      .def(
          "predict",
          [](const ModelDirectory& self, const std::string& target, const Rows& rows) {
            return array(checked(without_lock([&] { return predict_rows(self, target, rows); })));
          },
          nb::arg("target"), nb::arg("rows"));
  module.def(
      "read_model_directory",
      [](const std::string& path) { return checked(read_model_directory(path)); }, nb::arg("path"));
  module.def(
      "read_model_documents",
      [](const std::string& path) { return checked(read_model_documents(path)); }, nb::arg("path"));
  module.def(
      "config_of_kernel",
      [](const std::string& name, std::int32_t split_k) {
        return checked(config_of_kernel(name, split_k));
      },
      nb::arg("name"), nb::arg("split_k"));
  module.def("engine_columns", &engine_columns, nb::arg("table"));
  module.def(
      "engine_features",
      [](const std::string& table_name, const std::string& hardware, const std::string& problem,
         const std::vector<std::string>& kernels, const std::vector<std::int32_t>& split_k) {
        const FeatureTable& table = *checked(find_feature_table(table_name));
        std::vector<double> rows = checked(engine_rows(table, hardware, problem, kernels, split_k));
        return matrix(std::move(rows), kernels.size(), foreign_order(table).size());
      },
      nb::arg("table"), nb::arg("hardware"), nb::arg("problem"), nb::arg("kernels"),
      nb::arg("split_k"));
}

}  // namespace foretune::python
