#!/usr/bin/env bash
# The command line on a GPU that tests/fake_gpu plays: collect, resume after kill -9, train,
# predict, and evaluation where the device is not.
#
#   gpu_workflow_test.sh FORETUNE FAKE_LIBRARY SOURCE_DIR
set -euo pipefail
foretune="$1"
fake="$2"
source "$3/tests/expect.bash"

holds() { # holds TEXT FILE
  grep -qF -- "$1" "$2" || {
    head -n 20 "$2" >&2
    fail "'$1' is not in $2"
  }
}

libraries=(--family-option "driver=$fake" --family-option "nvml=$fake"
  --family-option "cublaslt=$fake")
{
  for rank in 1 2 3; do
    echo "heuristic=$rank algorithm=0 tile=0 stages=0 split_k=0 reduction=0 swizzle=0 custom=0 cluster=0 inner=0"
  done
  for tile in 15 18 20 23 448; do
    for cluster in 2 3 5; do
      for custom in 0 1 2; do
        echo "heuristic=0 algorithm=66 tile=$tile stages=35 split_k=1 reduction=0 swizzle=0 custom=$custom cluster=$cluster inner=0"
      done
    done
  done
} >configs.txt
{
  echo "operation,m,n,k,dtype,layout"
  for m in 64 128 200 328 512; do
    for n in 64 256 384; do
      echo "mm,$m,$n,256,bf16,rcr"
    done
  done
} >shapes.csv
collect=("$foretune" collect --family cublaslt "${libraries[@]}" --family-option configs=configs.txt
  --shapeset shapes.csv --num-shapes 0 --search-space EXHAUSTIVE --search-mode fast)

# The shapes keep the type that their file gives them.
"${collect[@]}" --dry-run --output dry.ftd >dry.txt 2>&1
holds "720 measurements" dry.txt

# Killed in the middle, the run goes on where it was.
"${collect[@]}" --output gpu.ftd >first.txt 2>&1 &
pid=$!
for _ in $(seq 200); do
  [[ -s gpu.ftd ]] && break
  sleep 0.02
done
sleep 0.1
kill -9 "$pid" 2>/dev/null || true
wait "$pid" 2>/dev/null || true
"${collect[@]}" --family-option clock_log=clock.csv --output gpu.ftd >second.txt 2>&1
"$foretune" inspect gpu.ftd >inspect.txt
holds "measurements        720" inspect.txt
holds "problems            15" inspect.txt
holds "machine             Foretune Fake GPU" inspect.txt
holds "sm_mhz" clock.csv
"$foretune" convert gpu.ftd --output gpu.csv >/dev/null
holds ",bf16,rcr," gpu.csv
# Not one row twice.
[[ "$(tail -n +2 gpu.csv | cut -d, -f2-17 | sort | uniq -d | wc -l)" == 0 ]] || fail "repeated rows"

# A device that is lost is an outcome, and the rest is measured.
FORETUNE_FAKE_GPU_FAULTS=crash:448 "${collect[@]}" --output lost.ftd --budget 60 >lost.txt 2>&1
"$foretune" inspect lost.ftd >lost_inspect.txt
holds "crashed" lost_inspect.txt
holds "ok " lost_inspect.txt

# A device that does not start is one sentence.
if FORETUNE_FAKE_GPU_FAULTS=nodevice "${collect[@]}" --output none.ftd >none.txt 2>&1; then
  fail "collected without a device"
fi
holds "cuInit" none.txt
[[ "$(wc -l <none.txt)" == 1 ]] || fail "more than one sentence: $(cat none.txt)"

"$foretune" train --dataset gpu.ftd --trees 60 --folds 3 --threads 1 --model gpu.ftm >train.txt 2>&1
"$foretune" predict --model gpu.ftm --m 256 --n 256 --k 256 --dtype bf16 --layout rcr >predict.txt
holds "pick:" predict.txt
# Evaluation needs no device: the heuristic's first choice is one of the baselines.
"$foretune" validate-model --model gpu.ftm --dataset gpu.ftd >evaluate.txt 2>&1
holds "family's default" evaluate.txt

# Convolutions by cuDNN: the heuristics' ranks and configs from a file; determinism can be demanded.
cudnn=(--family cudnn --family-option "driver=$fake" --family-option "nvml=$fake"
  --family-option "cudnn=$fake" --family-option workspace_mb=16)
{
  echo "engine=1 tile_size=2"
  echo "engine=2 tile_size=2 split_k_slc=2"
} >cudnn_configs.txt
{
  for op in forward backward_data backward_weight; do
    echo "conv op=$op n=2 c=16 k=16 hi=6 wi=6 y=3 x=3 pad_h=1 pad_w=1 dtype=bf16"
  done
} >convolutions.txt
"$foretune" collect "${cudnn[@]}" --family-option configs=cudnn_configs.txt --shapeset convolutions.txt \
  --num-shapes 0 --search-space EXHAUSTIVE --search-mode fast --output cudnn.ftd >cudnn.txt 2>&1
"$foretune" inspect cudnn.ftd >cudnn_inspect.txt
holds "measurements        114" cudnn_inspect.txt
holds "metrics             time_ns, bytes, deterministic:maximise:" cudnn_inspect.txt
holds "unsupported" cudnn_inspect.txt
"$foretune" convert cudnn.ftd --output cudnn.csv >/dev/null
"$foretune" tune conv op=forward n=2 c=16 k=16 hi=6 wi=6 y=3 x=3 dtype=bf16 "${cudnn[@]}" \
  --strategy exhaustive --objective "minimise time_ns subject to deterministic >= 1" >cudnn_tune.txt 2>&1
holds "best" cudnn_tune.txt
echo "all passed"
