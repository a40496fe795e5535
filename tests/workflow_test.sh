#!/usr/bin/env bash
# The whole workflow with tiny numbers, then what may go wrong with its files.
#   workflow_test.sh FORETUNE SOURCE_DIR CXX_COMPILER
set -euo pipefail
foretune="$1"
source_dir="$2"
compiler="$3"
source "$source_dir/tests/expect.bash"

FORETUNE="$foretune" SHAPESET="$source_dir/tests/small_shapes.csv" NUM_SHAPES=5 MAX_FLOPS=2e6 \
  SEARCH_SPACE=SAMPLE:6 "$source_dir/examples/workflow/workflow.sh"
test -s data/matmul_model.ftm
test -s data/seed_50_train_dataset.msgpack
test -s data/validation/validation_dataset.msgpack
grep -q "final model" data/logs/loss.csv

# The same command again measures nothing and keeps everything.
expect 0 "$foretune" --seed 50 collect --output data/seed_50_train_dataset.ftd --num-shapes 5 \
  --log-normal --max-flops 2e6 --search-space SAMPLE:6
grep -q "^0 measurements" out.txt

expect 0 "$foretune" inspect data/matmul_model.ftm
expect 0 "$foretune" predict --model data/matmul_model.ftm gemm m=24 n=24 k=24
expect 0 "$foretune" predict --model data/matmul_model.ftm --m 24 --n 24 --k 24 --top-k 3 --explain \
  --json predicted.json
grep -q '"explanation"' predicted.json
expect 2 "$foretune" predict --model data/matmul_model.ftm --m 24 --n 24 --k 24 --top-k 0
expect 0 "$foretune" search --model data/matmul_model.ftm --m 24 --n 24 --k 24 --strategy de \
  --budget 50 --top-k 3 --measure --rounds 2 --json searched.json
grep -q "measured" out.txt
grep -q '"best_measured_ns"' searched.json
expect 2 "$foretune" search --model data/matmul_model.ftm --m 24 --n 24 --k 24 --strategy guess
expect 0 "$foretune" tune --m 24 --n 24 --k 24 --budget 30 --rounds 2 --json tune.json
grep -q "^best: isa=" out.txt
grep -q '"best_ns"' tune.json
expect 0 "$foretune" tune --shapeset "$source_dir/tests/small_shapes.csv" --budget 30 --rounds 2 \
  --family null --family-option metrics=1 --json tune.json --report tune.html \
  --objective "pareto time_ns pack_ns subject to bytes <= 64 KiB"
grep -q "^  knee " out.txt
grep -q '"hypervolume"' tune.json
grep -q "All problems" tune.html
expect 0 "$foretune" tune --m 24 --n 24 --k 24 --layout rcr --budget 12 --rounds 2 \
  --model data/matmul_model.ftm
expect 0 "$foretune" tune --shapeset "$source_dir/tests/small_shapes.csv" --budget 8 --rounds 2 \
  --output tuned.ftd
expect 0 "$foretune" tune --shapeset "$source_dir/tests/small_shapes.csv" --budget 8 \
  --output tuned.ftd
grep -q "were tuned already" err.txt
expect 2 "$foretune" tune --shapeset "$source_dir/tests/small_shapes.csv" --budget 8 \
  --output tuned.ftd --objective "minimise pack_ns"
grep -q "was begun for another objective" err.txt
expect 2 "$foretune" tune --budget 8
expect 2 "$foretune" tune --m 24 --n 24 --k 24 --strategy model --budget 8
expect 0 "$foretune" convert data/seed_50_train_dataset.msgpack --output again.csv
expect 0 "$foretune" merge data/seed_50_train_dataset.ftd data/seed_50_train_dataset.msgpack \
  --output merged.ftd
expect 0 "$foretune" collect --output dry.ftd --num-shapes 3 --max-size 64 --dry-run
test ! -e dry.ftd

# Measurements from elsewhere: searched, trained on and judged like a live family.
expect 0 "$foretune" convert "$source_dir/tests/triton_times.csv" --output elsewhere.ftd --device h200
expect 0 "$foretune" collect --family recorded --family-data elsewhere.ftd --num-shapes 4 \
  --search-space EXHAUSTIVE --output elsewhere/train.ftd
expect 0 "$foretune" create-validation --family recorded --family-data elsewhere.ftd \
  --num-shapes 0 --search-space EXHAUSTIVE --training-data elsewhere --output elsewhere/rest.ftd
expect 0 "$foretune" train --data-dir elsewhere --model elsewhere.ftm --folds 2
# The best configs of a model, and a sample: no more than these.
expect 0 "$foretune" collect --family recorded --family-data elsewhere.ftd --num-shapes 3 \
  --model elsewhere.ftm --model-top 4 --search-space SAMPLE:2 --output best.ftd
grep -Eq "^([4-9]|1[0-9]|2[01]) measurements of 3 problems" out.txt
expect 2 "$foretune" collect --active --family recorded --family-data elsewhere.ftd --num-shapes 3 \
  --model elsewhere.ftm --output no.ftd
one_sentence
expect 0 "$foretune" validate-model --model elsewhere.ftm --dataset elsewhere/rest.ftd \
  --family-data elsewhere.ftd --json elsewhere.json
expect 0 "$foretune" evaluate --dataset elsewhere.ftd --nested-folds 2 --trees 20 --folds 2 \
  --json evaluated.json --html evaluated.html
grep -q "^  fold 2 " out.txt
grep -q '"ndcg_at_1"' evaluated.json
grep -q '"splits"' evaluated.json
test -s evaluated.html
expect 0 "$foretune" evaluate --dataset elsewhere.ftd --leave-out k:smallest --trees 20 --folds 0
grep -q "^  k [0-9]* to " out.txt
expect 2 "$foretune" evaluate --dataset elsewhere.ftd --leave-out k --nested-folds 3
expect 3 "$foretune" evaluate --dataset elsewhere.ftd --leave-out depth
grep -q "there are op, m, n, k" err.txt
one_sentence
# A model in the loop: rounds, going on where the file ends, and training on what is left.
active=(collect --active --family recorded --family-data elsewhere.ftd --num-shapes 0
  --configs-per-problem 12 --rounds 3)
expect 0 "$foretune" "${active[@]}" --dry-run --output active.ftd
grep -q " in 3 rounds; about " out.txt
expect 0 "$foretune" "${active[@]}" --output active.ftd
grep -q "^3 of 3 rounds; 2 trainings took " out.txt
measured="$(head -1 out.txt | cut -d' ' -f1)"
expect 0 "$foretune" "${active[@]}" --budget 30 --output parts.ftd
grep -q "^30 measurements " out.txt
expect 0 "$foretune" "${active[@]}" --output parts.ftd
grep -q "^30 were there already" out.txt
expect 0 "$foretune" convert active.ftd --output active.csv
expect 0 "$foretune" convert parts.ftd --output parts.csv
diff <(sort active.csv) <(sort parts.csv)
test "$(tail -n +2 active.csv | wc -l)" = "$measured"
for policy in random best improvement need; do
  expect 0 "$foretune" "${active[@]}" --policy $policy --active-objective regression \
    --output "$policy.ftd"
done
for wrong in "--rounds 2" "--policy best" "--active-budget 100" "--active --active-budget 1" \
  "--active --search-space EXHAUSTIVE" "--active --active-budget 99 --configs-per-problem 9"; do
  # shellcheck disable=SC2086
  expect 2 "$foretune" collect --family null --num-shapes 2 $wrong --output no.ftd
  one_sentence
done
# Against itself, as model and as report; then a slower one against a faster one.
expect 0 "$foretune" compare elsewhere.ftm elsewhere.json --dataset elsewhere/rest.ftd \
  --json compared.json
grep -q '"accepted": true' compared.json
grep -q "0 improved, .* 0 degraded" out.txt
sed 's/"efficiency": [01][.][0-9]*/"efficiency": 0.75/' elsewhere.json >faster.json
sed 's/"efficiency": [01][.][0-9]*/"efficiency": 0.25/' elsewhere.json >slower.json
expect 0 "$foretune" compare slower.json faster.json
expect 5 "$foretune" compare faster.json slower.json
grep -q "BROKEN any single problem: loses 66.7 %" out.txt
expect 2 "$foretune" compare elsewhere.ftm elsewhere.json
one_sentence
expect 3 "$foretune" compare elsewhere.json "$source_dir/tests/triton_times.csv"
one_sentence
# A checkpoint of torch-diode is a model like any other.
diode="$source_dir/foretune/interop/diode/testdata"
expect 0 "$foretune" import-model "$diode/diode_v1.pt" --pool elsewhere/train.ftd --output diode.ftm
grep -q "^torch-diode v1: 112 weights on 12 columns of gemm-diode-v1" out.txt
expect 0 "$foretune" validate-model --model diode.ftm --dataset elsewhere/rest.ftd \
  --family-data elsewhere.ftd
expect 0 "$foretune" import-model "$diode/diode_v1.pt" --pool elsewhere/train.ftd --output diode.ftm \
  --raw --diode-kind v1 --overwrite
expect 0 "$foretune" predict --model diode.ftm gemm m=128 n=256 k=64 dtype=bf16
for wrong in "" "--raw" "--diode-kind v2" "--target latency" "--kernels out.txt"; do
  # shellcheck disable=SC2086
  expect 2 "$foretune" import-model "$diode/diode_deep.pt" ${wrong:+--pool elsewhere.ftd} $wrong \
    --output no.ftm
  one_sentence
done
expect 3 "$foretune" import-model missing.pt --pool elsewhere.ftd --output no.ftm
one_sentence
# Every way of training; what is left is read, continued and the same again.
train() {
  expect 0 "$foretune" train --data-dir elsewhere --folds 2 --trees 20 --threads 1 "$@"
}
train --targets time,tflops,latency,bandwidth --out-dir all --write-lightgbm --json all.json
grep -q '"tflops_ndcg_at_1"' all.json
train --targets time,tflops,latency,bandwidth --out-dir again --write-lightgbm
diff -r all again
test "$(find all -type f | wc -l)" -eq 22
test ! -e matmul_model.ftm
for target in time tflops latency bandwidth; do
  expect 0 "$foretune" predict --model "all/model_$target.ftm" --m 1408 --n 848 --k 32 --dtype bf16
done
train --warm-start all --targets time,tflops --warm-start-n-estimators 5 --out-dir warm
grep -q '"added": 5' warm/train_manifest.json
train --warm-start all/model_time.ftm --warm-start-n-estimators 5 --model warm.ftm
expect 3 "$foretune" train --data-dir elsewhere --warm-start all/model_tflops.ftm --model no.ftm
one_sentence
grep -q "target 'tflops' against 'relative-log'" err.txt
expect 0 "$foretune" train --data-dir elsewhere --n-splits 3 --trees 20 --threads 1 \
  --group-key sizes --no-log-transform --targets tflops --out-dir plain
grep -q '"log_targets": \[\]' plain/feature_spec.json
train --objective lambdarank --model rank.ftm
train --objective regret --mining-rounds 1 --model regret.ftm
# The fast mode, and as a header for those who link nothing.
train --fast --model fast.ftm --json fast.json
grep -q '"fast_mean_regret"' fast.json
expect 0 "$foretune" inspect fast.ftm
grep -q "^  fast mode  *[0-9]* configs; loses [0-9.]* in the mean" out.txt
expect 0 "$foretune" export fast.ftm --cpp heuristics.h --namespace heuristics
grep -q "^wrote heuristics.h: [0-9]* configs" out.txt
cat >program.cc <<'CPP'
#include "heuristics.h"
#include <cstdio>
#include <initializer_list>
int main() {
  heuristics::Problem problem;
  problem.n = 848;
  problem.k = 32;
  problem.dtype = 2;  // bf16
  for (const int m : {16, 1408}) {
    problem.m = m;
    const auto pick = heuristics::select(problem);
    const auto index = static_cast<std::size_t>(pick.index);
    if (pick.index < 0 || !heuristics::is_legal(index, problem)) return 1;
    std::printf("block_m=%d\n", static_cast<int>(heuristics::kConfigs[index].block_m));
  }
}
CPP
expect 0 "$compiler" -std=c++17 -Wall -Wextra -Wpedantic -Werror program.cc -o program
expect 0 ./program
test "$(grep -c '^block_m=[1-9]' out.txt)" = 2
expect 3 "$foretune" export elsewhere.ftm --cpp no.h
one_sentence
grep -q "train with --fast" err.txt
expect 2 "$foretune" export fast.ftm --cpp no.h --namespace "no name"
one_sentence
test ! -e no.h
train --tune-budget 2 --model tuned.ftm
grep -q "^tried 2 draws" out.txt
for wrong in "--targets speed" "--targets time,time" "--write-lightgbm" "--targets time,tflops" \
  "--objective regret --targets tflops" "--warm-start-n-estimators 5" "--tune-budget soon" \
  "--weight-decay -1"; do
  # shellcheck disable=SC2086
  expect 2 "$foretune" train --data-dir elsewhere $wrong
  one_sentence
done
# Data against data: the same ones are as good as each other; times turned upside down are not.
expect 0 "$foretune" compare --retrain elsewhere/train.ftd elsewhere/train.ftd --folds 2 --trees 20 \
  --json retrained.json
grep -q '"accepted": true' retrained.json
awk -F, -v OFS=, 'NR > 1 { $NF = 1000 / $NF } { print }' "$source_dir/tests/triton_times.csv" \
  >inverted.csv
expect 0 "$foretune" convert inverted.csv --output inverted.ftd --device h200
expect 5 "$foretune" compare --retrain elsewhere/train.ftd inverted.ftd --folds 2 --trees 20 \
  --dataset elsewhere/train.ftd
expect 2 "$foretune" compare --retrain elsewhere/train.ftd elsewhere/train.ftd --folds 100
one_sentence
expect 3 "$foretune" compare --retrain elsewhere/train.ftd elsewhere/rest.ftd
one_sentence
expect 2 "$foretune" collect --family recorded --family-data elsewhere.ftd --log-normal \
  --output no.ftd
one_sentence

# Interrupted in the middle of problems: incumbents and the configs to compare are those of one run.
for command in "collect --search-space SAMPLE:40" "create-validation --search-space SAMPLE:40"; do
  rm -f whole.* parts.*
  # shellcheck disable=SC2206
  interrupted=($command --family null --num-shapes 2 --dtype f32 --layout rrr)
  expect 0 "$foretune" "${interrupted[@]}" --output whole.ftd
  for budget in 25 60 1000; do
    expect 0 "$foretune" "${interrupted[@]}" --budget $budget --output parts.ftd
  done
  expect 0 "$foretune" convert whole.ftd --output whole.csv
  expect 0 "$foretune" convert parts.ftd --output parts.csv
  grep -q ",censored," whole.csv
  diff <(sort whole.csv) <(sort parts.csv)
done

# How often a config is run, and what a family without anything to build says to build jobs.
expect 0 "$foretune" collect --family null --num-shapes 2 --search-space SAMPLE:3 --dtype f32 \
  --layout rrr --warmup 3 --repeat 7 --censor-factor 0 --output often.ftd
expect 0 "$foretune" convert often.ftd --output often.csv
column="$(head -1 often.csv | tr , '\n' | grep -nx samples | cut -d: -f1)"
test "$(tail -n +2 often.csv | cut -d, -f"$column" | sort -u)" = 7
expect 2 "$foretune" collect --build-jobs 2 --output no.ftd
one_sentence
grep -q "builds nothing" err.txt

# A space of billions of configs, of which only some are looked at; one without any values.
expect 0 "$foretune" collect --family null --num-shapes 6 --dtype f32 --layout rrr --output null.ftd
expect 0 "$foretune" convert null.ftd --output null.json
values="$(seq -s ' ' 1 300)"
sed -E "s/(parameter [a-z_]+ \[\]) [0-9 ]+/\1 $values/g" null.json >large.json
sed -E 's/(parameter [a-z_]+ \[\]) [0-9 ]+/\1/g' null.json >unnamed.json
for space in large unnamed; do
  expect 0 "$foretune" convert $space.json --output $space.ftd
  expect 0 "$foretune" train --dataset $space.ftd --folds 0 --trees 20 --model $space.ftm
done
search=(search --m 640 --n 640 --k 640 --budget 60)
for strategy in random stratified model local de evolution annealing; do
  expect 0 "$foretune" "${search[@]}" --model large.ftm --strategy $strategy --top-k 60 \
    --json found.json
  grep -q "^scored 60 configs of a space too large to be listed ($strategy)" out.txt
  test "$(grep '"config"' found.json | sort -u | wc -l)" = 60
done
expect 4 "$foretune" "${search[@]}" --model large.ftm --strategy exhaustive
one_sentence
grep -q "too large to be listed, so it cannot be searched exhaustively" err.txt
expect 3 "$foretune" "${search[@]}" --model unnamed.ftm
one_sentence
grep -q "'foretune predict' ranks the" err.txt
expect 0 "$foretune" predict --model unnamed.ftm --m 640 --n 640 --k 640

# CK Tile's files: in, out, and in again beside another.
ck="$source_dir/foretune/dataset/testdata/ck"
expect 0 "$foretune" convert "$ck/stream.log" --output ck.ftd --arch gfx950
grep -q "^5 rows read, 3 kept" out.txt
grep -q "dropped 1: .*'compv7' is not a pipeline" out.txt
grep -q "kept 1: .*pad flags are set" out.txt
expect 0 "$foretune" convert ck.ftd --output ck.csv --to ck-csv
grep -q "^gemm_universal,fp8,rcr,gfx950,gemm_universal_fp8_rcr_mem_" ck.csv
expect 0 "$foretune" convert ck.csv --output both.ftd --merge-with "$ck/stream.log" --arch gfx950
grep -q "^merged 3 repeats" out.txt
expect 0 "$foretune" convert "$ck/conv.csv" --output conv.ftd --hardware "$ck/rocminfo.txt"
expect 0 "$foretune" inspect conv.ftd
grep -q "Made-up Accelerator" out.txt
expect 2 "$foretune" convert "$ck/conv.csv" --output no.ftd --arch "no name"
expect 2 "$foretune" convert "$source_dir/tests/triton_times.csv" --output no.ftd --arch gfx950
expect 3 "$foretune" convert "$ck/conv.csv" --output no.ftd --hardware "$ck/run.json"
expect 0 "$foretune" collect --output dry.ftd --shapeset ck-25 --num-shapes 0 --dry-run
test ! -e no.ftd -a ! -e dry.ftd

expect 3 "$foretune" convert "$source_dir/tests/triton_times.csv" --output no.ftd --device h2000
one_sentence

# Bad input: one sentence, a non-zero exit, nothing lost.
expect 3 "$foretune" inspect missing.ftd
one_sentence
head -c 300 data/matmul_model.ftm >cut.ftm
expect 3 "$foretune" predict --model cut.ftm gemm m=1 n=1 k=1
one_sentence
expect 2 "$foretune" predict --model data/matmul_model.ftm gemm m=-1 n=1 k=1
one_sentence
expect 2 "$foretune" collect --no-such-option
one_sentence
expect 3 "$foretune" train --dataset data/validation/validation_dataset.ftd --model no.ftm
one_sentence
test ! -e no.ftm
cp data/validation/validation_dataset.ftd broken.ftd
printf 'x' | dd of=broken.ftd bs=1 seek=200 conv=notrunc status=none
cp broken.ftd before.ftd
expect 3 "$foretune" create-validation --output broken.ftd --num-shapes 1 --max-size 32
one_sentence
cmp -s broken.ftd before.ftd
expect 4 "$foretune" collect --family recorded --output x.ftd
echo "workflow: all as expected"
