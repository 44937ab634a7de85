#!/usr/bin/env bash
# requeue.sh BIN-FOLDER SCRIPTS-FOLDER srun|mpirun: jobs of troupe.sbatch that are told to leave, or cannot go on, return to
# the queue and go on from their state on disk, to the same answer as a job that was left alone; not more often than allowed.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
start_slurm 2 4
export TROUPE_JOB_LAUNCHER=$3

# The five-point Laplace operator on a square: many cheap iterations, so that there is time to disturb a job.
awk -v side=450 'BEGIN {
  n = side * side
  print "%%MatrixMarket matrix coordinate real symmetric"
  print n, n, n + 2 * side * (side - 1)
  for (i = 1; i <= n; ++i) {
    print i, i, 4
    if (i % side) print i + 1, i, -1
    if (i + side <= n) print i + side, i, -1
  }
}' >laplace.mtx

readonly solve=(-n 2 -- troupe.sbatch troupe-cg --matrix laplace.mtx --tol 1e-10 --check-every 5 --commit-every 10)
readonly saving=(--checkpoint-every 20 --checkpoint-dir)

# Not step-N.tmp, which is still being written, nor the file of the trial.
state_on_disk() { compgen -G "$1/troupe-cg/step-*[0-9]" >/dev/null; }

# went_on NAME: the job's last start took up a state, and its report says what that of the job left alone says.
went_on() {
  local key
  (($(value "$1.json" restarted_from) > 0)) || fail "$1: it began at the beginning again"
  for key in iterations relative_residual true_relative_residual relative_error; do
    [[ $(value "$1.json" "$key") == "$(value alone.json "$key")" ]] ||
      fail "$1: $key is $(value "$1.json" "$key"), not $(value alone.json "$key")"
  done
  note "$1: one restart, from iteration $(value "$1.json" restarted_from), the same answer"
}

succeeds alone "${solve[@]}" --json alone.json
within 1e-6 "$(value alone.json relative_error)" || fail "the answer is off by $(value alone.json relative_error)"
note "left alone: $(value alone.json iterations) iterations"

job=$(submit told "${solve[@]}" "${saving[@]}" told --json told.json)
wait_until 30 "a state on disk" state_on_disk told
scancel --signal=USR1 --batch "$job"
ended told "$job" 0 1
shows told.txt "signal USR1: passing it on"
shows told.txt "back into the queue \(restart 1 of at most 10\)"
went_on told

# In the capsule there are no processes but the test's.
job=$(submit spent "${solve[@]}" "${saving[@]}" spent --json spent.json --restart-budget 0)
wait_until 30 "a state on disk" state_on_disk spent
mapfile -t hosts < <(pgrep -x troupe-device-h)
kill -KILL "${hosts[@]}"
ended spent "$job" 0 1
went_on spent

# The fault is among the options, so the restart meets it again.
job=$(TROUPE_JOB_MAX_RESTARTS=1 submit capped "${solve[@]}" "${saving[@]}" capped --restart-budget 0 --fault kill@50:1)
ended capped "$job" 75 1
shows capped.txt "budget_exhausted" 2
shows capped.txt "1 restarts are as many as TROUPE_JOB_MAX_RESTARTS allows"
note "capped: a budget that is spent at every start; one restart, then status 75"
note passed
