// Compares a model's picks with the choice of NVIDIA's library, on products and convolutions that
// it was not trained on.
//
//   gpu_select --model cublaslt.ftm --shapes bench/shapes/cublaslt_test.csv --output test.ftd
//              [--family cublaslt | triton] [--rounds 9] [--top 5] [--seconds 600]
//              [--cublaslt FILE] [--kernels FILE] [--json FILE] ...
//   gpu_select --model cublaslt.ftm --data test.ftd [--margin 0.02] [--answers answers.tsv]
//              [--shapes FILE,FILE...] [--training-data FILE,FILE...]
//              [--training-shapes FILE,FILE...] [--json FILE]
//              [--second triton.ftm --second-data triton_test.ftd]
//   gpu_select --data test.ftd --answers test.tsv [--model FORWARD,BACKWARD_DATA,BACKWARD_WEIGHT]
//              [--margin 0.02] [--json FILE]
//
// The first form measures on the device (see gpu_measure.h), then goes on as the second form. The
// second form needs no device: it reads those measurements. Speeds are medians over the rounds of
// the same run, relative to the library's choice (the family's default config: cuBLASLt's first
// heuristic answer). The dispatcher's rules apply (pick_verdict.h). When --answers names the config
// of the library's choice (`cublaslt_space --list answers` lists them), a margin is over the
// model's score of that config, else over its score of the rank, which is an average. With
// --shapes, whose column `regime` is read, the table has a row for every regime. With the model's
// training set, or its shapes, it also has rows by novelty: a layer whose weights were trained on
// with another m, a new layer, sizes of no network. With a second model and its measurements, of
// another family on the same products, each product goes to the family whose model expects the
// larger gain over the library's choice, which both families have. The third form is for
// convolutions that `cudnn_collect --rounds` measured; it also reports by direction, and compares
// with the choice of one short timing (cudnn_report.h). Its models are those that this build ships
// unless others are named.
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_json.h"
#include "bench/cudnn_report.h"
#include "bench/gpu_measure.h"
#include "bench/pick_report.h"
#include "bench/shape_classes.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

Result<bench::ProductClasses> read_classes(int argc, char** argv,
                                           const std::vector<bench::RegimeShape>& shapes) {
  std::string trained_on = bench::argument(argc, argv, "training-data");
  if (const std::string more = bench::argument(argc, argv, "training-shapes"); !more.empty()) {
    trained_on += concat(trained_on.empty() ? "" : ",", more);
  }
  if (!trained_on.empty() && shapes.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "--training-data needs --shapes, which says what is a layer");
  }
  std::unique_ptr<bench::TrainedShapes> trained;
  if (!trained_on.empty()) {
    FORETUNE_TRY(auto read, bench::TrainedShapes::read(trained_on));
    trained = std::make_unique<bench::TrainedShapes>(std::move(read));
  }
  bench::ProductClasses classes;
  for (const bench::RegimeShape& shape : shapes) {
    classes.emplace(shape.problem, bench::classes_of(shape, trained.get()));
  }
  return classes;
}

Status compare_convolutions(int argc, char** argv, const Dataset& dataset, Figures& figures) {
  const std::string paths = bench::argument(argc, argv, "model");
  FORETUNE_TRY(const bench::CudnnModels models,
               paths.empty() ? bench::CudnnModels::shipped() : bench::CudnnModels::open(paths));
  FORETUNE_TRY(const bench::CudnnChoices choices,
               bench::read_choices(bench::argument(argc, argv, "answers")));
  FORETUNE_TRY(const bench::JudgedSet judged,
               bench::judge_convolutions(models, dataset, choices,
                                         bench::count_argument<std::size_t>(argc, argv, "top", 5)));
  return bench::report_directions(models, judged, dataset, choices,
                                  bench::number_argument(argc, argv, "margin", 0), figures);
}

Status run(int argc, char** argv, Figures& figures) {
  if (const std::string data = bench::argument(argc, argv, "data"); !data.empty()) {
    FORETUNE_TRY(const Dataset dataset, read_dataset(data));
    if (dataset.header().family == "cudnn") {
      return compare_convolutions(argc, argv, dataset, figures);
    }
  }
  FORETUNE_TRY(const std::unique_ptr<Selector> selector,
               Selector::open(bench::argument(argc, argv, "model")));
  std::vector<bench::RegimeShape> shapes;
  if (const std::string paths = bench::argument(argc, argv, "shapes"); !paths.empty()) {
    FORETUNE_TRY(shapes, bench::read_regimes(paths));
  }
  FORETUNE_TRY(const bench::ProductClasses classes, read_classes(argc, argv, shapes));
  std::string data = bench::argument(argc, argv, "data");
  if (data.empty()) {
    data = bench::argument(argc, argv, "output");
    if (data.empty() || shapes.empty()) {
      return fail(ErrorCode::kInvalidArgument, "give --data, or --shapes and --output");
    }
    FORETUNE_TRY_STATUS(bench::measure_contenders(argc, argv, *selector, shapes, data, figures));
  }
  const bench::ReportOptions options{
      .margin = bench::number_argument(argc, argv, "margin", 0),
      .top = bench::count_argument<std::size_t>(argc, argv, "top", 5)};
  FORETUNE_TRY(const Dataset dataset, read_dataset(data));
  FORETUNE_TRY(const bench::LibraryAnswers answers,
               bench::read_answers(bench::argument(argc, argv, "answers")));
  FORETUNE_TRY(const bench::JudgedSet judged,
               bench::judge_all(*selector, dataset, answers, options.top));
  FORETUNE_TRY_STATUS(bench::report(*selector, judged, options, classes, figures));
  const std::string second_path = bench::argument(argc, argv, "second");
  if (second_path.empty()) {
    return {};
  }
  FORETUNE_TRY(const std::unique_ptr<Selector> second, Selector::open(second_path));
  FORETUNE_TRY(const Dataset second_dataset,
               read_dataset(bench::argument(argc, argv, "second-data")));
  FORETUNE_TRY(const bench::JudgedSet second_judged,
               bench::judge_all(*second, second_dataset, {}, options.top));
  FORETUNE_TRY_STATUS(bench::report(*second, second_judged, options, classes, figures));
  return bench::report_union(judged, second_judged, options, classes, figures);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("gpu_select", argc, argv, foretune::run);
}
