#!/bin/bash
# Collects over a real Slurm cluster of one machine while tasks are killed, stopped until their time
# is over, and a node is drained and returned; compares the data set with that of one process.
#
#   scripts/slurm_test.sh build/dev/tools/foretune/foretune --json slurm.json
#
# Needs root, and of Debian: apt-get install munge slurmctld slurmd slurm-client. The cluster has a
# folder, a key and ports of its own and ends with the script; others on the machine stay untouched.
# --json FILE gets `lost` and `duplicated` (measurements), `taken_over` (shards), and what was done.
set -euo pipefail

if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "usage: scripts/slurm_test.sh FORETUNE [--json FILE] [--shards N] [--kills N] [--timeouts N]" >&2
    exit 2
fi
foretune=$(realpath "$1")
shift
json="" shards=200 kills=20 timeouts=5 nodes=8
while [ $# -gt 0 ]; do
    case "$1" in
        --json) json=$2 ;;
        --shards) shards=$2 ;;
        --kills) kills=$2 ;;
        --timeouts) timeouts=$2 ;;
        *) echo "slurm_test: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
for program in munged slurmctld slurmd sbatch squeue scontrol; do
    command -v $program > /dev/null || PATH=$PATH:/usr/sbin
    command -v $program > /dev/null || { echo "slurm_test: $program is missing (apt-get install munge slurmctld slurmd slurm-client)" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "slurm_test: slurmd starts jobs for users, so it needs root" >&2; exit 2; }

# Munge wants folders that only root may write to.
work=$(mktemp -d /var/tmp/foretune-slurm-XXXXXX)
chmod 755 "$work"
daemons=()
finish() {
    scancel --user root 2> /dev/null || true
    for pid in "${daemons[@]}"; do kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
    [ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap finish EXIT

# --- the cluster
mkdir "$work/munge" "$work/state"
head -c 1024 /dev/urandom > "$work/munge/key"
chmod 700 "$work/munge"; chmod 600 "$work/munge/key"
mkdir "$work/socket"
munged --foreground --force --key-file="$work/munge/key" --socket="$work/socket/munge" \
    --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" \
    > "$work/munged.out" 2>&1 &
daemons+=($!)
host=$(hostname -s)
port=$((20000 + $$ % 20000))
export SLURM_CONF=$work/slurm.conf
cat > "$SLURM_CONF" << CONF
ClusterName=foretune
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/socket/munge
CredType=cred/munge
StateSaveLocation=$work/state
SlurmctldPidFile=$work/slurmctld.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdPidFile=$work/slurmd-%n.pid
SlurmdLogFile=$work/slurmd-%n.log
SlurmdSpoolDir=$work/spool-%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
InactiveLimit=0
NodeName=node[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
for _ in $(seq 50); do [ -S "$work/socket/munge" ] && break; sleep 0.1; done
slurmctld -D -i > "$work/slurmctld.out" 2>&1 &
daemons+=($!)
for ((i = 1; i <= nodes; ++i)); do
    mkdir "$work/spool-node$i"
    slurmd -D -N node$i > "$work/slurmd-$i.out" 2>&1 &
    daemons+=($!)
done
ready=0
for _ in $(seq 120); do
    ready=$(sinfo --noheader --Node --states=idle --format=%N 2> /dev/null | sort -u | wc -l)
    [ "$ready" = "$nodes" ] && break
    sleep 0.5
done
if [ "$ready" != "$nodes" ]; then
    echo "slurm_test: only $ready of $nodes nodes are ready" >&2
    tail -5 "$work"/slurmctld.log "$work"/slurmd-*.log >&2 || true
    exit 1
fi
echo "slurm $(sinfo --version | cut -d' ' -f2): $nodes nodes are ready"

# --- the runs: kernels that hang make a shard take seconds, and change no figure
collect=("$foretune" collect --family null --num-shapes "$shards" --search-space SAMPLE:32 --seed 7
    --family-option hang=0.04 --family-option crash=0.04 --family-option wrong=0.05 --time-limit 1 --quiet)
"${collect[@]}" --output "$work/alone.ftd" > "$work/alone.out" &
alone=$!
printf '%s\n' '# lines of a site' '#SBATCH --chdir=/' 'export FORETUNE_TEST_SITE=1' > "$work/template"
shared=("${collect[@]}" --output "$work/shared.ftd" --slurm --nodes $((kills + 3 * nodes)) --cpus 1 --time 1
    --partition main --template "$work/template" --shard-size 1 --lease 4 --summary "$work/summary.json")
begin=$(date +%s)
"${shared[@]}" > "$work/shared.out" 2>&1 &
attending=$!

# Prints the process of a task that measures now, other than those already hit.
hit=" "
running_task() {
    local file name pid
    for file in $(ls "$work"/shared.run/leased 2> /dev/null | shuf); do
        name=${file#*.}
        pid=$(sed -n 's/^ "pid": \([0-9]*\),$/\1/p' "$work/shared.run/tasks/$name.json" 2> /dev/null || true)
        if [ -n "$pid" ] && [[ $hit != *" $pid "* ]] && kill -0 "$pid" 2> /dev/null; then
            echo "$pid"
            return 0
        fi
    done
    return 1
}
# Sends a signal to so many tasks.
strike() {
    local done=0 pid
    while [ $done -lt "$2" ] && kill -0 $attending 2> /dev/null; do
        if pid=$(running_task); then
            hit="$hit$pid "
            kill "-$1" "$pid" && done=$((done + 1))
        fi
        sleep 0.5
    done
    echo $done
}
# These run out of time: Slurm's warning wakes them up, without their leases, and they are stopped
# again until Slurm kills them.
strike STOP "$timeouts" > "$work/stopped"
for pid in $hit; do
    (while kill -STOP "$pid" 2> /dev/null; do sleep 0.3; done) &
    daemons+=($!)
done
scontrol update NodeName=node$nodes State=DRAIN Reason=test
strike KILL $((kills / 2)) > "$work/killed1"
# Ctrl-C leaves the jobs running, and the same command goes on.
kill -INT $attending 2> /dev/null || true
wait $attending || true
scontrol update NodeName=node$nodes State=RESUME
"${shared[@]}" >> "$work/shared.out" 2>&1 &
attending=$!
strike KILL $((kills - kills / 2)) > "$work/killed2"
if ! wait $attending; then
    echo "slurm_test: the run failed" >&2
    tail -5 "$work/shared.out" "$work"/shared.run/tasks/*.log >&2 || true
    exit 1
fi
seconds=$(($(date +%s) - begin))
# The stopped tasks have a minute each, and may outlive the run.
for _ in $(seq 120); do
    timed_out=$(scontrol show job --oneliner | grep -c JobState=TIMEOUT || true)
    [ "$timed_out" -ge "$(cat "$work/stopped")" ] && break
    sleep 1
done
wait $alone

# --- lost and repeated measurements
"$foretune" convert "$work/alone.ftd" --output "$work/alone.csv" > /dev/null
"$foretune" convert "$work/shared.ftd" --output "$work/shared.csv" > /dev/null
python3 - "$work" "$json" "$(cat "$work/stopped")" "$(cat "$work/killed1")" "$(cat "$work/killed2")" \
    "$timed_out" "$seconds" << 'PYTHON'
import collections
import json
import sys

work, path, stopped, killed1, killed2, timed_out, seconds = sys.argv[1:]


def rows(name):
    with open(f"{work}/{name}.csv", encoding="utf-8") as file:
        return collections.Counter(file.read().splitlines())


alone, shared = rows("alone"), rows("shared")
with open(f"{work}/summary.json", encoding="utf-8") as file:
    summary = json.load(file)["metrics"]
figures = {
    "shards": summary["shards"],
    "measurements": summary["measurements"],
    "lost": sum((alone - shared).values()),
    "unlike": sum((shared - alone).values()),
    "duplicated": summary["duplicated"],
    "taken_over": summary["taken_over"],
    "killed": int(killed1) + int(killed2),
    "stopped": int(stopped),
    "timed_out": int(timed_out),
    "tasks": summary["journals"],
    "seconds": int(seconds),
}
text = json.dumps({"name": "slurm", "metrics": figures}, indent=1)
print(text)
if path:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
sys.exit(0 if figures["lost"] == figures["unlike"] == figures["duplicated"] == 0 else 1)
PYTHON
