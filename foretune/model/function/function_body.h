// The body of the kind "function": a function outside of the library that predicts rows of inputs,
// for experiments. It is called back whenever the model is asked, and no file can hold it.
//
//   set_function(model, {.name = "mine", .inputs = inputs, .function = function});
//
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/network/network.h"

namespace foretune {

// Thread safety: predict() may be called by several threads at once.
class RowFunction {
 public:
  RowFunction() = default;
  RowFunction(const RowFunction&) = delete;
  RowFunction& operator=(const RowFunction&) = delete;
  virtual ~RowFunction() = default;
  // One prediction of the target for each of out.size() rows of `inputs`, which stand one after
  // another. May allocate, lock and take long, but does not throw.
  virtual Status predict(std::span<const float> inputs, std::span<double> out) const noexcept = 0;
};

struct FunctionBody final : ModelBody {
  FunctionBody() = default;
  FunctionBody(std::string name_of_type, std::vector<NetworkInput> columns,
               std::shared_ptr<const RowFunction> predictor)
      : name(std::move(name_of_type)), inputs(std::move(columns)), function(std::move(predictor)) {}
  [[nodiscard]] bool equals(const ModelBody& other) const override;

  std::string name;                  // of the type that was trained: for people
  std::vector<NetworkInput> inputs;  // of every row, in the order of their columns
  std::shared_ptr<const RowFunction> function;
};

// nullptr where the model is of another kind.
const FunctionBody* function_of(const Model& model);
// Makes the model one of a function.
void set_function(Model& model, FunctionBody body);

// The row of the table of kinds. Scores are infinite where the function fails, and may differ in
// their last bits with the rows that it is asked for at once.
const ModelKind& function_model_kind();

}  // namespace foretune
