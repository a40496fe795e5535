#!/usr/bin/env bash
# Work shared out among tasks: --local with tasks that are killed gives the data set of one process,
# Ctrl-C and the same command go on, and bad input is one sentence.
#   shared_run_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

figure() { # figure NAME FILE: its number in a JSON of figures
  sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$2" | head -1
}
rows() { # rows DATASET: all rows, in order
  "$foretune" convert "$1" --output rows.csv >/dev/null
  sort rows.csv
  rm rows.csv
}
# Kernels that hang for a second make a shard slow and change no figure.
collect=("$foretune" collect --family null --num-shapes 24 --search-space SAMPLE:24 --seed 5
  --family-option hang=0.02 --family-option crash=0.05 --family-option wrong=0.05 --time-limit 1)

# One process, and three of which some are killed.
expect 0 "${collect[@]}" --output alone.ftd
"${collect[@]}" --output shared.ftd --local 3 --shard-size 1 --lease 1 --summary shared.json \
  >shared.txt 2>&1 &
attending=$!
killed=0
for _ in $(seq 200); do
  kill -0 $attending 2>/dev/null && [[ $killed -lt 4 ]] || break
  sleep 0.3
  holder="$(ls shared.run/leased 2>/dev/null | shuf -n 1 || true)"
  pid="$(sed -n 's/^ "pid": \([0-9]*\),$/\1/p' "shared.run/tasks/${holder#*.}.json" 2>/dev/null || true)"
  if [[ -n $pid ]] && kill -9 "$pid" 2>/dev/null; then
    killed=$((killed + 1))
  fi
done
wait $attending || { cat shared.txt shared.run/tasks/*.log; fail "the run failed"; }
[[ $killed -ge 2 ]] || fail "only $killed tasks were there to be killed"
[[ "$(figure duplicated shared.json)" -eq 0 ]] || fail "measured twice"
[[ "$(figure taken_over shared.json)" -ge 1 ]] || fail "no shard was taken over"
[[ "$(figure done shared.json)" -eq 24 ]] || fail "shards are missing"
rows alone.ftd >alone.csv
rows shared.ftd >shared.csv
cmp alone.csv shared.csv || fail "the data sets differ"

# The same command again writes the same, and another one is refused.
expect 0 "${collect[@]}" --output shared.ftd --local 2
grep -q "going on with the run" err.txt
rows shared.ftd | cmp - alone.csv || fail "the data set changed"
expect 3 "$foretune" collect --family null --num-shapes 24 --output shared.ftd --local 2
one_sentence
grep -q "run of another command" err.txt

# Ctrl-C, and the same command.
"${collect[@]}" --output stopped.ftd --local 2 --shard-size 1 >stopped.txt 2>&1 &
attending=$!
for _ in $(seq 100); do
  [[ -n "$(ls stopped.run/done 2>/dev/null)" ]] && break
  sleep 0.1
done
kill -INT $attending
code=0
wait $attending || code=$?
[[ $code -eq 130 ]] || fail "Ctrl-C gave $code"
[[ -z "$(ls stopped.run/leased)" ]] || fail "a stopped task kept its shard"
[[ ! -e stopped.ftd ]] || fail "a data set before the end"
expect 0 "${collect[@]}" --output stopped.ftd --local 2
rows stopped.ftd | cmp - alone.csv || fail "the data sets differ after Ctrl-C"

# Other commands.
expect 0 "$foretune" create-validation --family null --num-shapes 4 --search-space SAMPLE:8 \
  --output valid.ftd --local 2
grep -q "by [12] tasks" out.txt
expect 0 "$foretune" inspect valid.ftd
grep -q validation out.txt
printf 'gemm m=%d n=64 k=64\n' 8 16 24 >shapes.txt
expect 0 "$foretune" tune --family null --shapeset shapes.txt --budget 20 --output tuned.ftd --local 2
[[ "$(grep -c '^gemm .*block_m=' out.txt)" -eq 3 ]] || fail "not all problems were tuned"

# Bad input.
for wrong in "--local 0" "--local x" "--slurm --local 2" "--partition p" "--lease 2" "--local 2 --time 5" \
  "--local 2 --active" "--local 2 --budget 3" "--local 2 --dry-run" "--slurm --template nothing.sh"; do
  # shellcheck disable=SC2086
  if "${collect[@]}" --output wrong.ftd $wrong >out.txt 2>err.txt; then
    fail "$wrong was taken"
  fi
  one_sentence
  [[ ! -e wrong.ftd ]] || fail "$wrong wrote a data set"
done
rm -rf wrong.run
expect 2 "$foretune" tune --family null --shapeset shapes.txt --local 2
one_sentence
expect 3 "$foretune" cluster-task nothing.run --name a
one_sentence
expect 2 "$foretune" cluster-task shared.run --name ../a
one_sentence
echo '{"format": "foretune-run", "version": 99}' >shared.run/plan.json
expect 4 "$foretune" cluster-task shared.run --name a
one_sentence
echo '{' >shared.run/plan.json
expect 3 "$foretune" cluster-task shared.run --name a
one_sentence

# Slurm, by programs that stand in for its own: sbatch runs the job at once.
mkdir programs
cat >programs/sbatch <<'END'
#!/usr/bin/env bash
cp "$2" "$SCRIPTS/submitted.sh"
for job in 71 72; do SLURM_JOB_ID=$job sh "$2" >>"$SCRIPTS/job.log" 2>&1 || exit 1; done
echo "71;cluster"
END
cat >programs/squeue <<'END'
#!/usr/bin/env bash
echo "slurm_load_jobs error: Invalid job id specified" >&2
exit 1
END
chmod +x programs/*
export SCRIPTS="$work" PATH="$work/programs:$PATH"
printf '%s\n' '#SBATCH --account=kernels' 'export SITE=1' >site.sh
expect 0 "${collect[@]}" --output slurm.ftd --slurm --app=foretune -n=2 -nc=4 -ng=1 -j=tiles --time=5 \
  --partition cpu --mail me@example.org --template site.sh
rows slurm.ftd | cmp - alone.csv || fail "the data sets differ over Slurm"
for line in '#SBATCH --job-name=tiles' '#SBATCH --array=0-1' '#SBATCH --cpus-per-task=4' \
  '#SBATCH --gres=gpu:1' '#SBATCH --time=5' '#SBATCH --partition=cpu' \
  '#SBATCH --mail-user=me@example.org' '#SBATCH --account=kernels' 'export SITE=1'; do
  grep -qxF -e "$line" submitted.sh || fail "the script lacks $line"
done
rm programs/sbatch
ln -s /bin/false programs/sbatch
expect 1 "${collect[@]}" --output none.ftd --slurm
one_sentence
grep -q exclusive none.run/slurm-0.sh || fail "a task would share its node"
echo "shared runs: passed ($killed tasks killed)"
