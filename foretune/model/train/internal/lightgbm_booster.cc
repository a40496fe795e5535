#include "foretune/model/train/internal/lightgbm_booster.h"

#include <LightGBM/c_api.h>

#include <utility>

#include "foretune/base/text.h"
#include "foretune/interop/trees/lightgbm_text.h"

namespace foretune::train_internal {
namespace {

// LightGBM writes its remarks to standard output by default; a library is silent.
void ignore_log(const char* /*message*/) {}

tl::unexpected<Error> lightgbm_failed(std::string_view what) {
  return fail(ErrorCode::kInternal, "LightGBM: ", what, ": ", LGBM_GetLastError());
}

std::vector<double> gather(const Matrix& matrix, std::span<const std::uint32_t> rows) {
  std::vector<double> out;
  out.reserve(rows.size() * matrix.columns);
  for (const std::uint32_t row : rows) {
    const double* begin = matrix.values.data() + std::size_t{row} * matrix.columns;
    out.insert(out.end(), begin, begin + matrix.columns);
    // A constant cannot be split.
    for (const std::size_t column : matrix.left_out) {
      out[out.size() - matrix.columns + column] = 0;
    }
  }
  return out;
}

Status set_field(DatasetHandle data, const char* name, const void* values, std::size_t count,
                 int type) {
  if (count > 0 && LGBM_DatasetSetField(data, name, values, static_cast<int>(count), type) != 0) {
    return lightgbm_failed(concat("setting ", name));
  }
  return {};
}

Status make_dataset(const Matrix& matrix, const BoosterRows& rows, const std::string& parameters,
                    DatasetHandle reference, void** out) {
  const std::vector<double> values = gather(matrix, rows.rows);
  if (LGBM_DatasetCreateFromMat(
          values.data(), C_API_DTYPE_FLOAT64, static_cast<std::int32_t>(rows.rows.size()),
          static_cast<std::int32_t>(matrix.columns), 1, parameters.c_str(), reference, out) != 0) {
    return lightgbm_failed("creating a data set");
  }
  // Where the gradients are ours, a label has to be there all the same.
  const std::vector<float> none(rows.label.empty() ? rows.rows.size() : 0, 0.0F);
  const std::vector<float>& label = rows.label.empty() ? none : rows.label;
  FORETUNE_TRY_STATUS(set_field(*out, "label", label.data(), label.size(), C_API_DTYPE_FLOAT32));
  FORETUNE_TRY_STATUS(
      set_field(*out, "weight", rows.weight.data(), rows.weight.size(), C_API_DTYPE_FLOAT32));
  FORETUNE_TRY_STATUS(
      set_field(*out, "group", rows.group.data(), rows.group.size(), C_API_DTYPE_INT32));
  return set_field(*out, "init_score", rows.start.data(), rows.start.size(), C_API_DTYPE_FLOAT64);
}

}  // namespace

Result<std::unique_ptr<Booster>> Booster::create(const Matrix& matrix, const BoosterRows& train,
                                                 const BoosterRows& valid,
                                                 const std::string& parameters) {
  LGBM_RegisterLogCallback(&ignore_log);
  std::unique_ptr<Booster> booster(new Booster());
  booster->columns_ = matrix.columns;
  FORETUNE_TRY_STATUS(make_dataset(matrix, train, parameters, nullptr, &booster->train_data_));
  if (LGBM_BoosterCreate(booster->train_data_, parameters.c_str(), &booster->booster_) != 0) {
    return lightgbm_failed("creating a booster");
  }
  if (!valid.rows.empty()) {
    FORETUNE_TRY_STATUS(
        make_dataset(matrix, valid, parameters, booster->train_data_, &booster->valid_data_));
    if (LGBM_BoosterAddValidData(booster->booster_, booster->valid_data_) != 0) {
      return lightgbm_failed("adding validation data");
    }
  }
  return booster;
}

Booster::~Booster() {
  if (booster_ != nullptr) {
    LGBM_BoosterFree(booster_);
  }
  for (void* data : {train_data_, valid_data_}) {
    if (data != nullptr) {
      LGBM_DatasetFree(data);
    }
  }
}

Result<bool> Booster::update(std::span<const float> gradients, std::span<const float> hessians) {
  int finished = 0;
  if (LGBM_BoosterUpdateOneIterCustom(booster_, gradients.data(), hessians.data(), &finished) !=
      0) {
    return lightgbm_failed("adding a tree");
  }
  return finished == 0;
}

Result<bool> Booster::update() {
  int finished = 0;
  if (LGBM_BoosterUpdateOneIter(booster_, &finished) != 0) {
    return lightgbm_failed("adding a tree");
  }
  return finished == 0;
}

Result<double> Booster::metric() {
  int count = 0;
  if (LGBM_BoosterGetEvalCounts(booster_, &count) != 0) {
    return lightgbm_failed("counting metrics");
  }
  std::vector<double> values(static_cast<std::size_t>(count));
  if (count == 0 || LGBM_BoosterGetEval(booster_, 1, &count, values.data()) != 0) {
    return lightgbm_failed("reading a metric");
  }
  return values.front();
}

Status Booster::predictions(int which, std::vector<double>& out) {
  std::int64_t count = 0;
  if (LGBM_BoosterGetNumPredict(booster_, which, &count) != 0) {
    return lightgbm_failed("counting predictions");
  }
  out.resize(static_cast<std::size_t>(count));
  if (LGBM_BoosterGetPredict(booster_, which, &count, out.data()) != 0) {
    return lightgbm_failed("reading predictions");
  }
  return {};
}

Result<std::string> Booster::text(std::size_t trees) {
  std::int64_t length = 0;
  std::string out(1, '\0');
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (LGBM_BoosterSaveModelToString(
            booster_, 0, static_cast<int>(trees), C_API_FEATURE_IMPORTANCE_GAIN,
            static_cast<std::int64_t>(out.size()), &length, out.data()) != 0) {
      return lightgbm_failed("writing the model");
    }
    if (length <= static_cast<std::int64_t>(out.size())) {
      break;
    }
    out.resize(static_cast<std::size_t>(length));
  }
  out.resize(static_cast<std::size_t>(length > 0 ? length - 1 : 0));
  return out;
}

Result<std::vector<double>> Booster::gains() {
  std::vector<double> out(columns_);
  if (LGBM_BoosterFeatureImportance(booster_, 0, C_API_FEATURE_IMPORTANCE_GAIN, out.data()) != 0) {
    return lightgbm_failed("reading the gains");
  }
  return out;
}

Result<Forest> Booster::forest(std::size_t trees) {
  FORETUNE_TRY(const std::string model, text(trees));
  FORETUNE_TRY(TreeModel read, parse_lightgbm_text(model));
  return std::move(read.forest);
}

}  // namespace foretune::train_internal
