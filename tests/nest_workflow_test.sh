#!/usr/bin/env bash
# Loop nests as problems of the core: each of the four types is drawn, measured by formula, learnt
# from, asked for, and goes through tables; LoopTune's data sets are shape sets.
#   nest_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

declare -A options=(
  [nest_mm]="--tas no yes --relus no yes"
  [nest_conv]="--layouts nchw nhwc --bias no yes"
  [nest_map]="--chains relu bias_relu scale_shift"
  [nest_reduce]="--operations add max --of_columns no yes")
declare -A problems=(
  [nest_mm]="nest_mm m=192 n=96 k=64 ta=yes"
  [nest_conv]="nest_conv c=64 h=56 w=56 o=64 r=3 s=3 pad=1 layout=nhwc"
  [nest_map]="nest_map r=64 c=512 chain=scale_shift"
  [nest_reduce]="nest_reduce r=64 c=512 op=max of_columns=yes")
for type in "${!options[@]}"; do
  null=(--family null --family-option "type=$type")
  read -r -a drawn <<<"${options[$type]}"
  read -r -a text <<<"${problems[$type]}"
  expect 0 "$foretune" collect "${null[@]}" --num-shapes 20 --output "$type-uniform.ftd"
  expect 0 "$foretune" collect "${null[@]}" --num-shapes 60 --log-normal "${drawn[@]}" \
    --search-space SAMPLE:40 --output "$type.ftd"
  expect 0 "$foretune" create-validation "${null[@]}" --num-shapes 10 --log-normal "${drawn[@]}" \
    --training-data "$type.ftd" --search-space SAMPLE:40 --output "$type-validation.ftd"
  for key in problem weights; do
    expect 0 "$foretune" train --dataset "$type.ftd" --model "$type.ftm" --group-key $key --trees 80
  done
  expect 0 "$foretune" validate-model --model "$type.ftm" --dataset "$type-validation.ftd" \
    --training-data "$type.ftd" --no-measure --html report.html
  test -s report.html

  # One problem by text, and by options: m=192 as --m 192.
  expect 0 "$foretune" predict --model "$type.ftm" "${text[@]}"
  cp out.txt by_text.txt
  by_options=()
  for word in "${text[@]:1}"; do
    by_options+=("--${word%%=*}" "${word#*=}")
  done
  expect 0 "$foretune" predict --model "$type.ftm" "${by_options[@]}"
  grep -q "block_m=" out.txt
  cmp by_text.txt out.txt
  expect 3 "$foretune" predict --model "$type.ftm" gemm m=8 n=8 k=8
  one_sentence

  # Tables and documents, there and back.
  for format in csv json; do
    expect 0 "$foretune" convert "$type.ftd" --output "$type.$format"
    expect 0 "$foretune" convert "$type.$format" --output "$type-from-$format.ftd"
    expect 0 "$foretune" convert "$type-from-$format.ftd" --output "$type.again.$format"
    cmp "$type.$format" "$type.again.$format"
  done
done

# Data sets by the names that env-generate lists, a set of each type.
for set in mm64_256_16_test25:nest_mm:25 conv_train:nest_conv:62 mobilenet_v2:nest_conv:30; do
  IFS=: read -r name type count <<<"$set"
  expect 0 "$foretune" collect --family null --family-option "type=$type" --shapeset "$name" \
    --num-shapes 0 --search-space SAMPLE:3 --output "$name.ftd"
  grep -q " of $count problems" out.txt
done
expect 0 "$foretune" env-generate --list
for name in conv_test conv_train mm64_128_16 mobilenet_v2 resnet50; do
  grep -q "$name" out.txt
done
echo "loop nests as problems: as expected"
