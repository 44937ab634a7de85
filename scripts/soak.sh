#!/usr/bin/env bash
# Runs troupe-cg again and again with random faults, and looks whether every answer is right and nothing stays behind.
#
#   scripts/soak.sh [--seconds N] [--ranks N] [--engine ENGINE] [--seed N] [--results FOLDER] BIN [-- TROUPE-CG-OPTION...]
#
# BIN is the folder of troupe's programs. First one job without a fault; then, for N seconds (60), jobs with one to four
# faults each, whose kinds, iterations and ranks follow from the seed (1); the ranks are the GPUs of this machine, or 2 with
# --engine cpu. The problem is that of the options (default: --stencil 64 --tol 1e-10 --check-every 5 --commit-every 20).
#
# A job is right if it ends with 0 and its iterations and its residual, to six digits, are those of the job without a fault.
# At the end no process of the jobs may be left, and GPUs must have as much memory free as before: nothing else may use them
# meanwhile. The output of a job that is not right is kept in FOLDER (default soak.out). Exit status: 0; 1 if
# a job was not right or something is left; 2 for bad usage.
set -euo pipefail
source "$(dirname "$0")/lib/build.sh"
export LC_ALL=C

# wrong_usage WHAT
wrong_usage() {
  printf '== error: %s\n' "$*" >&2
  exit 2
}

seconds=60 ranks='' engine=cuda seed=1 out=soak.out bin=''
while (($#)) && [[ $1 != -- ]]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --seconds | --ranks | --engine | --seed | --results)
      [[ $# -ge 2 ]] || { usage >&2 && exit 2; }
      case $1 in
        --seconds) seconds=$2 ;;
        --ranks) ranks=$2 ;;
        --engine) engine=$2 ;;
        --seed) seed=$2 ;;
        --results) out=$2 ;;
      esac
      shift
      ;;
    *)
      [[ -z $bin && $1 != -* ]] || { usage >&2 && exit 2; }
      bin=$1
      ;;
  esac
  shift
done
(($# == 0)) || shift
problem=("$@")
((${#problem[@]})) || problem=(--stencil 64 --tol 1e-10 --check-every 5 --commit-every 20)
[[ " ${problem[*]} " == *" --restart-budget "* ]] || problem+=(--restart-budget 100)
kinds=(kill segv exit hang)
[[ $engine == cpu ]] || kinds+=(illegal-address trap assert misaligned)
[[ -n $ranks ]] || { [[ $engine == cpu ]] && ranks=2 || ranks=$(gpu_count); }
for number in "$seconds" "$ranks" "$seed"; do
  [[ $number =~ ^[1-9][0-9]{0,8}$ ]] || wrong_usage "'$number' is no number from 1 on"
done
[[ -x $bin/troupe-cg ]] || wrong_usage "there is no troupe-cg in '$bin'"
bin=$(cd "$bin" && pwd -P)
mkdir -p "$out"
mpi_environment
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}  # a killed process may leave something in the switches

memory_in_use() { [[ $engine == cpu ]] || nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits; }
# What the jobs have started is known by a variable in its environment.
processes() { { grep -lzxF "TROUPE_JOB_SOAK=$$" /proc/[0-9]*/environ 2>/dev/null || true; } | tr -dc '0-9\n' | paste -sd ' '; }

# job FAULT...: its report in job.json, its output in job.txt
job() {
  local options=() fault
  for fault in "$@"; do options+=(--fault "$fault"); done
  rm -f "$out/job.json"
  TROUPE_JOB_SOAK=$$ timeout --kill-after=5 120 mpirun -n "$ranks" --oversubscribe --bind-to none "$bin/troupe-cg" --engine "$engine" \
    "${problem[@]}" "${options[@]}" --json "$out/job.json" >"$out/job.txt" 2>&1 </dev/null
}
answer() {
  [[ -f $out/job.json ]] || return 0
  sed -n -e 's/^ *"iterations": \([0-9]*\),*$/\1/p' -e 's/^ *"relative_residual": \([^,]*\),*$/\1/p' "$out/job.json" |
    awk '{ printf "%.6g ", $1 }'
}
# random N: sets drawn to one of 0 to N - 1. (In a subshell the generator would not go on.)
random() { drawn=$((RANDOM % $1)); }

before=$(memory_in_use)
status=0
job || status=$?
((status == 0)) || { cat "$out/job.txt" >&2 && die "the job without a fault ended with $status"; }
right=$(answer)
iterations=${right%% *}
say "without a fault: iterations and residual $right"

jobs=0 wrong=0 suffered=0 RANDOM=$seed end=$((SECONDS + seconds))
while ((jobs == 0 || SECONDS < end)); do
  faults=() status=0
  random 4
  for ((count = drawn + 1; count > 0; --count)); do
    random ${#kinds[@]} && kind=${kinds[drawn]}
    random "$iterations" && iteration=$drawn
    random "$ranks" && faults+=("$kind@$iteration:$drawn")
  done
  job "${faults[@]}" || status=$?
  jobs=$((jobs + 1))
  seen=$(grep -c '"repeated_iterations"' "$out/job.json" 2>/dev/null || true)
  suffered=$((suffered + ${seen:-0}))
  if ((status != 0)) || [[ $(answer) != "$right" ]] || ((seen == 0)); then
    wrong=$((wrong + 1))
    cp "$out/job.txt" "$out/wrong-$jobs.txt"
    say "job $jobs, faults ${faults[*]}: status $status, ${seen:-0} recoveries, $(answer)(see wrong-$jobs.txt)"
  fi
done
rm -f "$out/job.json" "$out/job.txt"

# A device host ends soon after a rank that was killed, and the driver frees memory soon after that.
for ((wait = 0; wait < 40; ++wait)); do
  left=$(processes)
  [[ -n $left || $(memory_in_use) != "$before" ]] || break
  sleep 0.5
done
[[ -z $left ]] || { wrong=$((wrong + 1)) && say "processes that still run: $left"; }
[[ $(memory_in_use) == "$before" ]] ||
  { wrong=$((wrong + 1)) && say "memory of the GPUs in use, MiB: before ${before//$'\n'/ }, now $(memory_in_use | tr '\n' ' ')"; }
say "$jobs jobs on $ranks ranks, $suffered recoveries, $wrong wrong"
((wrong == 0))
