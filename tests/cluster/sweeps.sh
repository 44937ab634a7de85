#!/usr/bin/env bash
# sweeps.sh BIN-FOLDER SCRIPTS-FOLDER: scaling.sbatch and drill.sbatch measure what they say they do and write it down.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
start_slurm 2 4

export TROUPE_JOB_RESULTS=$work/results
succeeds scaling -n 2 -- scaling.sbatch --size 16 --repeat 1 -- troupe-cg --stencil '{points}' --standby off
# On one rank both kinds are the same problem; on two the strong one is still that, the weak one twice as large.
for run in strong-1 strong-2 weak-1 weak-2; do
  rows=$([[ $run == weak-2 ]] && echo 8192 || echo 4096)
  shows "$TROUPE_JOB_RESULTS/$run-1.json" "\"rows\": $rows,"
  shows "$TROUPE_JOB_RESULTS/$run-1.json" "\"ranks\": ${run#*-},"
done
shows "$TROUPE_JOB_RESULTS/strong-2-1.json" '16 x 16 x 8 points per rank'
shows scaling.txt '^\| [12] \| 1 \|' 4
shows scaling.txt '^\| 1 \| 1 \| .* \| 1.000 \|' 2
note "strong and weak scaling on 1 and 2 ranks"

succeeds drill -n 2 -- drill.sbatch troupe-cg --stencil 16 --commit-every 10 --fault kill@20:1
shows "$TROUPE_JOB_RESULTS/drill.json" '"total_ms": [0-9.]+'
shows drill.txt "^Recoveries: 1"
note "a drill"
note passed
