#include "tools/foretune/commands.h"

#include <array>
#include <span>

namespace foretune::cli {

std::span<const Subcommand> subcommands() {
  static constexpr std::array kSubcommands{
      Subcommand{
          "collect", "measure configs of many problems into a training data set",
          "Measures kernels on sampled problems and writes each result to a journal as soon as it "
          "is "
          "there. "
          "Kill it at any moment, run the same command again, and it continues where it stopped.",
          "foretune collect --output data/train.ftd --log-normal --max-flops 1e9 --budget 5m",
          false, &prepare_collect, true},
      Subcommand{
          "create-validation", "measure a validation data set, which training refuses to read",
          "Works like collect, and writes a data set that train refuses to learn from. Measures at "
          "least 256 configs per problem, and the best of them once more, side by side.",
          "foretune create-validation --output v.ftd --shapeset shapes.json --training-data data",
          false, &prepare_create_validation, true},
      Subcommand{"train", "learn a cost model from data sets",
                 "Reads a data set, or all below a folder except validation sets, scores held-out "
                 "problems by group k-fold, and writes a model file, or with --out-dir a folder of "
                 "them with figures.",
                 "foretune train --data-dir data --model gemm.ftm", false, &prepare_train},
      Subcommand{"validate-model", "judge a model's picks on problems that it never saw",
                 "Compares the model's picks with the best measured config of every problem, and "
                 "shows the baselines beside them. Where the family runs here, it measures the "
                 "picks that the data set lacks, interleaved with the best, and appends them to "
                 "the data set.",
                 "foretune validate-model --model gemm.ftm --dataset v.ftd --html report.html",
                 false, &prepare_validate_model},
      Subcommand{"evaluate", "cross-validate a way of training on one data set",
                 "Leaves out a part of the problems, trains a model on the rest, judges its picks "
                 "on the part that was left out, and repeats this for every part. Everything that "
                 "training chooses for itself is chosen without that part. With --model, it judges "
                 "that model's picks instead.",
                 "foretune evaluate --dataset data/train.ftd --leave-out k", false,
                 &prepare_evaluate},
      Subcommand{
          "compare", "decide whether a new model may replace an old one",
          "Compares the picks of two models on the problems of a data set, or the picks in two "
          "reports of validate-model, and exits with 5 when the new one loses more than the rules "
          "allow. With --retrain it compares two data sets, by models trained on each.",
          "foretune compare old.ftm new.ftm --dataset v.ftd", false, &prepare_compare},
      Subcommand{"tune", "find the best config of a problem by measuring",
                 "Lets a strategy propose configs of one problem, or of each in a list, and "
                 "measures them within the budget. Then times the best against each other and "
                 "against the family's default. A program of your own becomes a family by "
                 "--plugin FILE.toml.",
                 "foretune tune --m 128 --n 1536 --k 7168 --budget 60s", false, &prepare_tune},
      Subcommand{"approx", "find the fastest networks within an allowed loss of quality",
                 "Times and judges every way in which each layer may compute less, learns how "
                 "quality and time add up, and measures the networks that this recommends for each "
                 "budget. The tuning images choose; the test images only report.",
                 "foretune approx resnet20.ftt --budgets 0.5,1,2 --json resnet20.json", false,
                 &prepare_approx},
      Subcommand{"measure",
                 "time given configs of a problem, beside the default and a model's pick",
                 "Verifies and times each config, with all its metrics, then times those with a "
                 "right result against each other. Exits with 1 when one of them fails.",
                 "foretune measure --m 128 --n 1536 --k 7168 --config \"mr=8 nr=32 kc=256 ...\" "
                 "--model gemm.ftm",
                 false, &prepare_measure},
      Subcommand{"predict", "list the best configs of a problem, without measuring",
                 "Takes a model file, or a directory of models, also one that Composable Kernel's "
                 "heuristics trained, and names the kernels with their predicted times and rates.",
                 "foretune predict --model gemm.ftm --m 128 --n 1536 --k 7168", false,
                 &prepare_predict},
      Subcommand{"search", "search a problem's space with a model, without measuring",
                 "Lets a strategy propose configs of one problem, scores them with a model and "
                 "lists the best. Where the whole space can be scored, it also says how much the "
                 "search missed. With --measure it times the listed configs against each other.",
                 "foretune search --model gemm.ftm --m 128 --n 1536 --k 7168 --strategy de "
                 "--measure",
                 false, &prepare_search},
      Subcommand{"inspect", "show the contents of a data set, model or network", "",
                 "foretune inspect gemm.ftm", false, &prepare_inspect},
      Subcommand{
          "convert", "convert a data set to another format, or a network into ours",
          "Reads .ftd, CSV (.gz too), JSON, MessagePack, torch-diode's files and the "
          "benchmark results of CK Tile (JSON, logs, CSV), and writes any of them but CK's "
          "JSON and logs. Every dropped row is counted and explained. An output that ends in "
          ".ftn gets the network of an ONNX file, or of a task (.ftt). A CSV file has a column "
          "for each field of its problems (m, n and k; for a kernel of your own variant, a whole "
          "number, and size_1 to size_8), one of time_ns, time_us and time_ms, and a column for "
          "each parameter of the configs.",
          "foretune convert times.csv.gz --output times.ftd --family recorded", false,
          &prepare_convert},
      Subcommand{"export", "write a model as a C++17 header without dependencies",
                 "Writes one header for library authors: the portfolio, the network that ranks it, "
                 "and the rules of the space. It picks what the model's distilled mode picks.",
                 "foretune export gemm.ftm --cpp gemm_heuristics.h", false, &prepare_export},
      Subcommand{"merge", "merge data sets; repeats become their median", "",
                 "foretune merge a.ftd b.ftd --output all.ftd", false, &prepare_merge},
      Subcommand{"import-model",
                 "convert a model of CK Tile's heuristics or torch-diode into a model file",
                 "Reads a model directory (feature_spec.json, model_tflops.lgbm[.gz]) or a "
                 "checkpoint of torch-diode (.pt, which is never unpickled). Writes a model file "
                 "for predict, validate-model, compare and the selector. The candidates come from "
                 "a data set; those of a model directory may also be given by name.",
                 "foretune import-model models/gemm_universal_fp8_gfx950 --pool gemm.ftd --output "
                 "gemm.ftm",
                 false, &prepare_import_model},
      Subcommand{"env", "show schedules of one loop nest as trees and as C, and time them",
                 "Compiles schedules of a matrix product, a convolution or a reduction to machine "
                 "code, verifies and times them. Give a schedule as text or as a list of "
                 "LoopTune's actions, or let --search try those of a textbook.",
                 "foretune env \"mm m=192 n=96 k=64\" --search 64 --c kernel.c", false,
                 &prepare_env},
      Subcommand{
          "env-search", "search the fastest schedules of loop nests",
          "Runs several methods on every benchmark of a data set under equal budgets, times their "
          "results in turns, and writes tables, plots and the machine's facts into a folder.",
          "foretune env-search --dataset mm64_256_16_test25 --size 5 --eval-time 2 "
          "--output results",
          false, &prepare_env_search},
      Subcommand{
          "train-policy", "learn to schedule loop nests without searching",
          "Plays episodes on loop nests by a policy, measures every schedule that it passes "
          "through, and learns from the speeds. The model proposes schedules of nests that it has "
          "never seen: to predict, to tune --strategy policy and to env-search --methods looptune.",
          "foretune train-policy --model policy.ftm --output run --seconds 600", false,
          &prepare_train_policy},
      Subcommand{"env-generate", "write lists of loop nests over ranges of sizes",
                 "Writes benchmarks for env and env-search: products or convolutions of all sizes "
                 "in the given ranges, if wanted with a part set aside for tests. --list shows the "
                 "built-in data sets.",
                 "foretune env-generate --dimA 64:128:16,64:128:16 --dimB 64:128:16,64:128:16 "
                 "--out mm.txt",
                 false, &prepare_env_generate},
      Subcommand{"doctor", "show what this machine can do, and why a family is missing", "",
                 "foretune doctor", false, &prepare_doctor},
      Subcommand{"completion", "print a shell completion script", "",
                 "foretune completion bash > ~/.local/share/bash-completion/completions/foretune",
                 false, &prepare_completion},
      Subcommand{"reference", "write this command line as pages of the documentation or of man", "",
                 "foretune reference --man man1", true, &prepare_reference},
      Subcommand{"worker", "measures for another process over its pipes", "", "", true,
                 &prepare_worker},
      Subcommand{"cluster-task", "measures shards of a run until none is left",
                 "A job array of Slurm, or --local of another command, runs it.",
                 "foretune cluster-task data/train.run --name node1-0", true,
                 &prepare_cluster_task},
  };
  return kSubcommands;
}

}  // namespace foretune::cli
