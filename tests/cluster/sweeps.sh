#!/usr/bin/env bash
# sweeps.sh BIN-FOLDER SCRIPTS-FOLDER: scaling.sbatch and drill.sbatch measure what they say they do and write it down.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
start_slurm 2 4

export TROUPE_JOB_POINTS=16 TROUPE_JOB_REPEAT=1 TROUPE_JOB_RESULTS=$work/results
succeeds scaling -n 2 -- scaling.sbatch troupe-cg --standby off
report=$TROUPE_JOB_RESULTS/scaling.json
# On one rank both kinds are the same problem; on two the strong one is still that, the weak one twice as large.
shows "$report" '"kind": "strong", "ranks": [12], .*"rows": 4096,' 2
shows "$report" '"kind": "weak", "ranks": 1, .*"rows": 4096,' 1
shows "$report" '"kind": "weak", "ranks": 2, "points_per_rank": "16", "rows": 8192,' 1
shows "$report" '"kind": "strong", "ranks": 2, "points_per_rank": "16,16,8"' 1
shows "$report" '"efficiency": 1.000' 2
shows scaling.txt '^(strong|weak) ' 4
note "strong and weak scaling on 1 and 2 ranks"

succeeds drill -n 2 -- drill.sbatch troupe-cg --stencil 16 --commit-every 10 --fault kill@20:1
shows "$TROUPE_JOB_RESULTS/drill.json" '"total_ms": [0-9.]+'
shows drill.txt "^Recoveries: 1"
note "a drill"
note passed
