#!/usr/bin/env bash
# requeue.sh BIN-FOLDER SCRIPTS-FOLDER srun|mpirun: jobs of troupe.sbatch that are told to leave, or cannot go on, return to
# the queue and go on from their state on disk, to the same answer as a job that was left alone; not more often than allowed.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
start_slurm 2 4
export TROUPE_JOB_LAUNCHER=$3

readonly solve=(-n 2 -- troupe.sbatch troupe-cg --stencil 40 --tol 1e-12 --check-every 5 --commit-every 5)

# same_answer NAME: the report of that job says what that of the job that was left alone says
same_answer() {
  local key
  for key in iterations relative_residual true_relative_residual relative_error; do
    [[ $(value "$1.json" "$key") == "$(value alone.json "$key")" ]] ||
      fail "$1: $key is $(value "$1.json" "$key"), not $(value alone.json "$key")"
  done
}
state_on_disk() { [[ -n $(find "$1" -type f 2>/dev/null) ]]; }

succeeds alone "${solve[@]}" --json alone.json
within 1e-8 "$(value alone.json relative_error)" || fail "the answer is off by $(value alone.json relative_error)"
note "a job that is left alone: $(value alone.json iterations) iterations"

job=$(submit told "${solve[@]}" --json told.json --checkpoint-dir state --checkpoint-every 5)
wait_until 30 "a state on disk" state_on_disk state
scancel --signal=USR1 --batch "$job"
ended told "$job" 0 1
same_answer told
note "told to leave by USR1: one restart, the same answer"

# Each start loses more device hosts than it may: the fault is among the options, so every restart meets it again.
job=$(TROUPE_JOB_MAX_RESTARTS=1 submit capped "${solve[@]}" --json capped.json --checkpoint-dir capped \
  --checkpoint-every 5 --restart-budget 0 --fault kill@0:1)
ended capped "$job" 75 1
shows capped.txt "1 restarts are as many as TROUPE_JOB_MAX_RESTARTS allows"
note "a restart budget that is spent at every start: one restart, then status 75"
note passed
