#!/usr/bin/env bash
# Trains and judges every network of the tables in docs/benchmarks.md, JOBS at a time. Trained
# networks stay in FOLDER/trained and are not trained again.
#
#   bench/network_table.sh h200|cpu FOLDER FILE [argument of network_models...]
#
# FILE is PyTorch's triton_mm_bf16.csv.gz or a data set. JOBS is the number of concurrent runs, ONLY
# a regular expression of the rows to run, BENCH the program.
set -euo pipefail

data="$1"
folder="$2"
file="$3"
shift 3

# Models, then the options that they alone are trained with; the slowest come first.
h200_rows() {
  cat <<'ROWS'
gbdt,standard+listmle:1+lambdarank:0.3 --networks 3 --dropout 0.1 --tree-threads 4
gbdt,deep+listmle,deep+listmle~int8 --tree-threads 4
deep+lambdarank,deep+lambdarank~int8
deep,deep~int8
standard+listmle:1+lambdarank:0.3,standard+listmle:1+lambdarank:0.3~int8 --dropout 0.1
two-tower+listmle --networks 2 --dropout 0.1
deep~sample
deep~raw
deep+margin
deep+mse:1+lambdarank:0.5
deep+lambdarank~raw
standard
standard~raw
standard+margin
standard+lambdarank
standard+listmle
standard+mse:1+lambdarank:0.5
two-tower
two-tower+listmle --dropout 0.05
two-tower+lambdarank --hidden-dim 256 --dot 64 --interaction 64 --dropout 0.1
ROWS
}

cpu_rows() {
  cat <<'ROWS'
gbdt,standard+mse:1+lambdarank:0.5 --networks 3 --tree-threads 4
deep,deep~int8
deep+margin,deep+margin~int8
two-tower+listmle --networks 2 --dropout 0.1
standard+mse:1+lambdarank:0.5,standard+mse:1+lambdarank:0.5~int8
standard,standard~int8
deep~sample
deep~raw
deep+lambdarank
deep+listmle
deep+mse:1+lambdarank:0.5
standard~raw
standard+margin
standard+lambdarank
standard+listmle
two-tower
two-tower+lambdarank
two-tower+listmle
ROWS
}

case "$data" in
  h200) input="--h200 $file" ;;
  cpu) input="--data $file" ;;
  *)
    echo "there is no table '$data'; there are h200 and cpu" >&2
    exit 2
    ;;
esac
mkdir -p "$folder/trained"
export OMP_NUM_THREADS=1

# Names the files of a row by its models and flags, without characters that file names cannot have.
# shellcheck disable=SC2016
"${data}_rows" | grep -E -- "${ONLY:-.}" |
  xargs -P "${JOBS:-1}" -d '\n' -I ROW bash -c '
    bench="$1" folder="$2" input="$3" row="$4"
    shift 4
    name="$(tr -c "a-z0-9.\n" - <<<"$row")"
    $bench $input --models $row --batch-size 4096 --learning-rate 0.002 --threads 1 \
      --work-dir "$folder/trained/$name" --json "$folder/$name.json" "$@" \
      >"$folder/$name.txt" 2>"$folder/$name.err" || tail -n 1 "$folder/$name.err" >&2
  ' - "${BENCH:-build/bench/bench/network_models}" "$folder" "$input" ROW "$@"
for report in "$folder"/*.txt; do
  basename "$report" .txt
  tail -n +3 "$report"
done
