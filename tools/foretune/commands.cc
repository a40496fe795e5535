#include "tools/foretune/commands.h"

#include <array>
#include <span>

namespace foretune::cli {

std::span<const Subcommand> subcommands() {
  static constexpr std::array kSubcommands{
      Subcommand{
          "collect", "measure configs of many problems into a training data set",
          "Measures kernels on sampled problems and appends every result to a journal at "
          "once: kill it at any moment, run the same command again, and it continues where "
          "it stopped.",
          "foretune collect --output data/train.ftd --log-normal --max-flops 1e9 --budget 5m",
          false, &prepare_collect, true},
      Subcommand{
          "create-validation", "measure problems that training never sees, densely",
          "The same as collect, into a data set that train refuses to learn from. At least "
          "256 configs a problem, the best of them measured again side by side.",
          "foretune create-validation --output v.ftd --shapeset shapes.json --training-data data",
          false, &prepare_create_validation, true},
      Subcommand{"train", "learn a cost model from data sets",
                 "Reads a data set, or all below a folder except validation sets, scores held-out "
                 "problems by group k-fold, and writes a model file, or with --out-dir a folder of "
                 "them with figures.",
                 "foretune train --data-dir data --model gemm.ftm", false, &prepare_train},
      Subcommand{
          "validate-model", "how close the picks come to the best, on unseen problems",
          "Compares the model's picks with the best measured config of every problem, beside "
          "the baselines. Picks that were never measured are measured, interleaved with the "
          "best, when the family runs here.",
          "foretune validate-model --model gemm.ftm --dataset v.ftd --html report.html", false,
          &prepare_validate_model},
      Subcommand{"evaluate", "how good a way of training is, from a data set alone",
                 "Leaves out a part of the problems, trains a model on the others from the "
                 "beginning, judges its picks on what was left out, and does so for every part. "
                 "What the training chooses for itself it chooses without that part.",
                 "foretune evaluate --dataset data/train.ftd --leave-out k", false,
                 &prepare_evaluate},
      Subcommand{"compare", "whether a new model may replace an old one",
                 "Puts the picks of two models beside each other on the problems of a data set, or "
                 "those of two reports of validate-model, and exits with 5 when the new one loses "
                 "more than the rules allow. With --retrain it does the same for two data sets, by "
                 "models trained on each.",
                 "foretune compare old.ftm new.ftm --dataset v.ftd", false, &prepare_compare},
      Subcommand{
          "tune", "search the best config of a problem by measuring",
          "Lets a strategy propose configs of one problem, or of each in a list, measures them "
          "within the budget, and times the best against each other and against the family's "
          "default.",
          "foretune tune --m 128 --n 1536 --k 7168 --budget 60s", false, &prepare_tune},
      Subcommand{"measure", "given configs of one problem, beside the default and a model's pick",
                 "Verifies and times each config, with all its metrics, then times those that are "
                 "right against each other. Exits with 1 when one of them fails.",
                 "foretune measure --m 128 --n 1536 --k 7168 --config \"mr=8 nr=32 kc=256 ...\" "
                 "--model gemm.ftm",
                 false, &prepare_measure},
      Subcommand{"predict", "the best configs for one problem", "",
                 "foretune predict --model gemm.ftm --m 128 --n 1536 --k 7168", false,
                 &prepare_predict},
      Subcommand{"search", "search the best config of a problem by a model's predictions",
                 "Lets a strategy propose configs of one problem, scores them with a model and "
                 "lists the best. Where the space can be listed it says how far that stays behind "
                 "scoring all of it. With --measure the listed ones are timed against each other.",
                 "foretune search --model gemm.ftm --m 128 --n 1536 --k 7168 --strategy de "
                 "--measure",
                 false, &prepare_search},
      Subcommand{"inspect", "what is in a data set or model file", "", "foretune inspect gemm.ftm",
                 false, &prepare_inspect},
      Subcommand{"convert", "between data set formats",
                 "Reads .ftd, CSV (.gz too), JSON, MessagePack, torch-diode's files and the "
                 "benchmark results of CK Tile (JSON, logs, CSV), and writes any of them but CK's "
                 "JSON and logs. Every dropped row is counted and explained.",
                 "foretune convert times.csv.gz --output times.ftd --family recorded", false,
                 &prepare_convert},
      Subcommand{"export", "a model's fast mode as a C++17 header without dependencies",
                 "Writes the portfolio, the network that ranks it and the space's rules as one "
                 "header for library authors that picks what the model's fast mode picks.",
                 "foretune export gemm.ftm --cpp gemm_heuristics.h", false, &prepare_export},
      Subcommand{"merge", "several data sets into one, duplicates reduced to their median", "",
                 "foretune merge a.ftd b.ftd --output all.ftd", false, &prepare_merge},
      Subcommand{"import-model",
                 "a model that CK Tile's heuristics or torch-diode trained, as one of ours",
                 "Reads a model directory (feature_spec.json, model_tflops.lgbm[.gz]) or a "
                 "checkpoint of torch-diode (.pt), which is not unpickled, and writes a model file "
                 "for predict, validate-model, compare and the selector. The candidates come from "
                 "a data set, or for a model directory by name.",
                 "foretune import-model models/gemm_universal_fp8_gfx950 --pool gemm.ftd --output "
                 "gemm.ftm",
                 false, &prepare_import_model},
      Subcommand{"env", "one loop nest: schedules as a tree and as C, and how fast they are",
                 "Compiles schedules of a matrix product, a convolution or a reduction to machine "
                 "code, verifies and times them. A schedule is a text, a list of LoopTune's "
                 "actions, or the best of those that a textbook would try.",
                 "foretune env \"mm m=192 n=96 k=64\" --search 64 --c kernel.c", false,
                 &prepare_env},
      Subcommand{"env-search", "search the fastest schedules of loop nests",
                 "Searches every benchmark of a data set by several methods under equal budgets, "
                 "each with a stopwatch of its own, times what they found in turns, and writes "
                 "tables, plots and the machine's facts into a folder.",
                 "foretune env-search --dataset mm64_256_16_test25 --size 5 --eval-time 2 "
                 "--output results",
                 false, &prepare_env_search},
      Subcommand{"env-generate", "lists of loop nests by ranges of sizes",
                 "Writes benchmarks for env and env-search: products or convolutions of all sizes "
                 "in some ranges, and a part for tests where that is wanted. --list shows the data "
                 "sets that there are.",
                 "foretune env-generate --dimA 64:128:16,64:128:16 --dimB 64:128:16,64:128:16 "
                 "--out mm.txt",
                 false, &prepare_env_generate},
      Subcommand{"doctor", "what this machine can do, and why a family is absent", "",
                 "foretune doctor", false, &prepare_doctor},
      Subcommand{"completion", "a shell completion script", "",
                 "foretune completion bash > ~/.local/share/bash-completion/completions/foretune",
                 false, &prepare_completion},
      Subcommand{"reference", "this command line as Markdown", "", "", true, &prepare_reference},
      Subcommand{"worker", "measures for another process over its pipes", "", "", true,
                 &prepare_worker},
  };
  return kSubcommands;
}

}  // namespace foretune::cli
