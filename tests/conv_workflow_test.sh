#!/usr/bin/env bash
# Convolutions take every command that needs no kernel of their own: drawn, from shape sets, recorded,
# as text, as options, from tables and documents, in all three directions.
#   conv_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"
null=(--family null --family-option type=conv)
directions=(forward backward_data backward_weight)

# Drawn and measured by formula, in all directions.
expect 0 "$foretune" collect "${null[@]}" --num-shapes 60 --log-normal --log-normal-hi-mean 3 \
  --operations "${directions[@]}" --dtypes f32 bf16 --layouts channels_last channels_first \
  --max-flops 1e11 --search-space SAMPLE:40 --output train.ftd
expect 0 "$foretune" convert train.ftd --output train.csv
for label in "${directions[@]}" channels_first bf16; do
  grep -q "$label" train.csv
done
expect 0 "$foretune" train --dataset train.ftd --model conv.ftm --group-key weights --trees 80
expect 0 "$foretune" inspect conv.ftm

# Shape sets: CK's, and those of networks, whose validation layers training never had.
for set in ck-conv ck-conv-backward-data ck-conv-backward-weight; do
  expect 0 "$foretune" collect "${null[@]}" --shapeset $set --num-shapes 5 \
    --search-space SAMPLE:3 --output $set.ftd
done
expect 0 "$foretune" collect "${null[@]}" --shapeset conv-networks-train --num-shapes 80 \
  --search-space SAMPLE:20 --output networks.ftd
expect 0 "$foretune" create-validation "${null[@]}" --shapeset conv-networks-validation \
  --num-shapes 20 --training-data networks.ftd --search-space SAMPLE:40 --output validation.ftd
expect 0 "$foretune" train --dataset networks.ftd --model networks.ftm --trees 80
expect 0 "$foretune" validate-model --model networks.ftm --dataset validation.ftd \
  --training-data networks.ftd --no-measure --html report.html --json figures.json
grep -qE "direction +forward" out.txt
grep -qE "kind +" out.txt
grep -qE "weights +new +20 " out.txt
test -s report.html

# One problem: by options, by text; a wrong option is one sentence.
by_sizes=(--n 8 --c 64 --k 128 --hi 56 --wi 56 --y 3 --x 3 --pad_h 1 --pad_w 1)
text=(conv n=8 c=64 k=128 hi=56 wi=56 y=3 x=3 pad_h=1 pad_w=1)
expect 0 "$foretune" predict --model conv.ftm "${by_sizes[@]}" --operation backward_data
cp out.txt by_sizes.txt
expect 0 "$foretune" predict --model conv.ftm "${text[@]}" op=backward_data --explain
grep -q "^pick: block_m=" out.txt
test "$(grep ^pick by_sizes.txt)" = "$(grep ^pick out.txt)"
expect 2 "$foretune" predict --model conv.ftm --m 8 --n 4
one_sentence
grep -q -- "--m: a conv problem has no m" err.txt
# In a folder the model for the problem on this machine is found.
mkdir folder
cp conv.ftm folder
expect 3 "$foretune" predict --model folder "${text[@]}"
one_sentence
grep -q "conv.ftm is for" err.txt
small=(conv n=1 c=16 k=16 hi=28 wi=28 y=3 x=3 pad_h=1 pad_w=1)
printf '%s\n' "${small[*]}" "${small[*]//28/14}" >small.txt
expect 0 "$foretune" collect --family cpu-conv --shapeset small.txt --num-shapes 0 \
  --search-space SAMPLE:12 --search-mode fast --output live.ftd
expect 0 "$foretune" train --dataset live.ftd --model folder/live.ftm --trees 20 --folds 0
expect 0 "$foretune" predict --model folder "${small[@]}"
grep -q "algorithm=" out.txt
expect 2 "$foretune" predict --model folder "${by_sizes[@]}"
one_sentence
expect 3 "$foretune" predict --model folder gemm m=8 n=8 k=8
one_sentence
grep -q "live.ftm is for other problems" err.txt
expect 0 "$foretune" search --model conv.ftm "${by_sizes[@]}" --budget 50
expect 0 "$foretune" tune "${null[@]}" "${by_sizes[@]}" --budget 30 --output tuned.ftd
grep -q "GFLOP/s" out.txt

# Tables and documents, there and back; a table says by its columns what it holds.
expect 0 "$foretune" convert train.csv --output from_csv.ftd
expect 0 "$foretune" convert train.ftd --output train.json
expect 0 "$foretune" convert train.json --output from_json.ftd
for copy in from_csv from_json; do
  expect 0 "$foretune" convert $copy.ftd --output $copy.csv
  cmp <(cut -d, -f1-27 train.csv) <(cut -d, -f1-27 $copy.csv)
done
printf 'a,b,time_ns\n1,2,3\n' >nothing.csv
expect 3 "$foretune" convert nothing.csv --output nothing.ftd
one_sentence
grep -q "no type of problem: gemm needs m n k, conv needs n c k hi wi y x, " err.txt
printf 'size_1,algorithm,time_ns\n1,merge,3\n' >sizes.csv
expect 3 "$foretune" convert sizes.csv --output nothing.ftd
one_sentence
grep -q "for problems of type kernel the CSV lacks variant (number of the kernel's variant); " err.txt
awk 'BEGIN {
  print "variant,size_1,tile,time_us"
  for (size = 16; size <= 4096; size *= 2) for (variant = 4; variant <= 9; variant += 5)
    for (tile = 8; tile <= 32; tile *= 2) print variant "," size "," tile "," 1 + size / tile + variant * tile
}' >launches.csv
expect 0 "$foretune" convert launches.csv --output launches.ftd
expect 0 "$foretune" train --dataset launches.ftd --model launches.ftm --trees 20 --folds 0
expect 2 "$foretune" predict --model launches.ftm --size_1 64
one_sentence
grep -q "variant is missing; the model knows variant 4, 9$" err.txt
expect 0 "$foretune" predict --model launches.ftm --variant 4 --size_1 64
grep -q "^kernel variant=4 size_1=64$" out.txt

# Recorded measurements of kernels that do not run here.
recorded=(--family recorded --family-data "$source_dir/tests/golden/conv.ftd")
expect 0 "$foretune" collect "${recorded[@]}" --num-shapes 0 --output recorded.ftd
expect 0 "$foretune" create-validation "${recorded[@]}" --num-shapes 10 --dtypes bf16 --output some.ftd
expect 0 "$foretune" train --dataset recorded.ftd --model recorded.ftm --trees 60
expect 0 "$foretune" evaluate --dataset recorded.ftd --folds 3 --trees 40
expect 0 "$foretune" compare recorded.ftm "$source_dir/tests/golden/conv.ftm" --dataset recorded.ftd
expect 2 "$foretune" create-validation "${recorded[@]}" --num-shapes 0 --dtypes f64 --output none.ftd
one_sentence

# Kernels of Composable Kernel: picked among those that exist, and searched among all that could.
awk 'BEGIN {
  print "kernel,N,C,K,G,Hi,Wi,Y,X,stride_h,stride_w,pad_h,pad_w,latency_ms"
  for (c = 64; c <= 1024; c *= 2) for (h = 7; h <= 56; h *= 2) for (m = 16; m <= 64; m *= 2) {
    work = h * h * c * c * 9 * 1e-11
    for (v = 3; v <= 4; ++v) printf "grouped_conv_forward_bf16_2d_%dx64x64_compv%d,1,%d,%d,1,%d,%d,3,3,1,1,1,1,%.7f\n",
      m, v, c, c, h, h, 0.002 + work * (1 + 16 / m + h / 56 * m / 64) * (v == 4 ? 0.9 : 1)
  }
}' >ck.csv
expect 0 "$foretune" convert ck.csv --arch gfx950 --output ck.ftd
expect 0 "$foretune" train --dataset ck.ftd --model ck.ftm --folds 3 --trees 60
layer=(--n 1 --c 256 --k 256 --hi 28 --wi 28 --y 3 --x 3 --pad_h 1 --pad_w 1 --dtype bf16)
for strategy in random de; do
  expect 0 "$foretune" search --model ck.ftm "${layer[@]}" --strategy $strategy --budget 500 --top-k 10
  grep -q "^scored 18 of 18 legal configs ($strategy)" out.txt
done
expect 0 "$foretune" predict --model ck.ftm "${layer[@]}"
grep -q "^6 of 6 candidates are legal" out.txt
# A group of four channels is no vector: the kernels refuse it.
expect 0 "$foretune" predict --model ck.ftm "${layer[@]/256/4}"
grep -q "^0 of 6 candidates are legal" out.txt
# Nothing measured the seventh kernel. The filters choose what is read of a folder.
echo grouped_conv_forward_bf16_2d_128x64x128_compv3 >built.txt
mkdir data
cp ck.ftd train.ftd data
expect 0 "$foretune" train --data-dir data --op grouped_conv_forward --dtype bf16 --arch gfx950 \
  --kernels built.txt --base-feature log2_moved_over_least --without-features memory_share buffers \
  --folds 0 --trees 20 --model more.ftm
expect 0 "$foretune" predict --model more.ftm "${layer[@]}" --top-k 9
grep -q "^7 of 7 candidates are legal" out.txt
expect 3 "$foretune" train --data-dir data --folds 0 --trees 20 --model none.ftm # they do not fit
expect 3 "$foretune" train --data-dir data --op gemm --model none.ftm
expect 0 "$foretune" evaluate --dataset ck.ftd --group-key weights --leave-out-configs pipeline \
  --nested-folds 2 --folds 0 --trees 20 --base-feature log2_moved_over_least --json unseen.json
grep -q "^  pipeline=compv4 *3 *20" out.txt
grep -q '"unseen_mean_efficiency"' unseen.json
expect 2 "$foretune" evaluate --dataset ck.ftd --leave-out-configs pipeline --html no.html
echo "convolutions: as expected"
