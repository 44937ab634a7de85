#!/usr/bin/env bash
# sweeps.sh BIN-FOLDER SCRIPTS-FOLDER: scaling.sbatch and drill.sbatch measure what they say they do and write it down.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
start_slurm 2 4

# sweep NAME SBATCH-OPTION... -- ARGUMENT...: one of the scripts as a job that has to succeed
sweep() {
  local name=$1 id options=()
  shift
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  id=$(sbatch --parsable -o "$name.txt" "${options[@]}" "$scripts/slurm/$name.sbatch" "${@:2}")
  wait_for_job "$id" 90 "$name.txt"
  [[ $(job_exit "$id") == 0 ]] || { cat "$name.txt" && fail "$name: exit status $(job_exit "$id")"; }
}
# lines FILE PATTERN COUNT
lines() {
  local found
  found=$(grep -cE "$2" "$1") || true
  [[ $found == "$3" ]] || { cat "$1" && fail "$1: $found lines match '$2', not $3"; }
}

export TROUPE_JOB_POINTS=16 TROUPE_JOB_REPEAT=1 TROUPE_JOB_RESULTS=$work/results
sweep scaling -n 2 -- troupe-cg --standby off
report=$TROUPE_JOB_RESULTS/scaling.json
# On one rank both kinds are the same problem; on two the strong one is still that, the weak one twice as large.
lines "$report" '"kind": "strong", "ranks": [12], .*"rows": 4096,' 2
lines "$report" '"kind": "weak", "ranks": 1, .*"rows": 4096,' 1
lines "$report" '"kind": "weak", "ranks": 2, "points_per_rank": "16", "rows": 8192,' 1
lines "$report" '"kind": "strong", "ranks": 2, "points_per_rank": "16,16,8"' 1
lines "$report" '"efficiency": 1.000' 2
lines scaling.txt '^(strong|weak) ' 4
note "strong and weak scaling on 1 and 2 ranks"

TROUPE_JOB_FAULTS="kill exit" sweep drill -n 2 -- troupe-cg --stencil 16 --commit-every 10
lines "$TROUPE_JOB_RESULTS/drill.json" '"fault": "(kill|exit)", "runs": 1, "median_ms": [0-9.]+, "max_ms": [0-9.]+' 2
lines drill.txt '^(kill|exit) +1 ' 2
note "two kinds of faults"
note passed
