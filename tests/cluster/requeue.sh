#!/usr/bin/env bash
# requeue.sh BIN-FOLDER SCRIPTS-FOLDER srun|mpirun: jobs of troupe.sbatch that are told to leave, or cannot go on, return to
# the queue and go on from their state on disk, to the same answer as a job that was left alone; not more often than allowed.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
start_slurm 2 4
export TROUPE_JOB_LAUNCHER=$3

# The five-point Laplace operator on a square: some hundred iterations.
awk -v side=200 'BEGIN {
  n = side * side
  print "%%MatrixMarket matrix coordinate real symmetric"
  print n, n, n + 2 * side * (side - 1)
  for (i = 1; i <= n; ++i) {
    print i, i, 4
    if (i % side) print i + 1, i, -1
    if (i + side <= n) print i + side, i, -1
  }
}' >laplace.mtx

# In its first start it stands still in iteration 200, until its device hosts are killed: however fast the machine is, the job
# has not ended when it is disturbed.
cat >stands-still <<'END'
#!/usr/bin/env bash
((${SLURM_RESTART_COUNT:-0})) ||
  set -- "$@" --fault hang@200:0 --heartbeat-timeout 600s --phase-timeout 700s --token-timeout 700s
exec troupe-cg "$@"
END
chmod +x stands-still

readonly problem=(--matrix laplace.mtx --tol 1e-10 --check-every 5 --commit-every 10)
readonly saving=(--checkpoint-every 20 --checkpoint-dir)

# Not step-N.tmp, which is still being written, nor the file of the trial.
state_on_disk() { compgen -G "$1/troupe-cg/step-*[0-9]" >/dev/null; }

# returns NAME: kills device hosts, and looks whether the job has gone back into the queue.
returns() {
  # In the capsule there are no processes but the test's.
  pkill -KILL -x troupe-device-h || true
  sleep 2
  grep -q "back into the queue" "$1.txt"
}

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

succeeds alone -n 2 -- troupe.sbatch troupe-cg "${problem[@]}" --json alone.json
within 1e-6 "$(value alone.json relative_error)" || fail "the answer is off by $(value alone.json relative_error)"
note "left alone: $(value alone.json iterations) iterations"

job=$(submit told -n 2 -- troupe.sbatch "$PWD/stands-still" "${problem[@]}" "${saving[@]}" told --json told.json)
wait_until 300 "a state on disk" state_on_disk told
scancel --signal=USR1 --batch "$job"
wait_until 300 "the signal" grep -q "signal USR1: passing it on" told.txt
wait_until 300 "the end of the first start" returns told
ended told "$job" 0 1
shows told.txt "signal USR1: passing it on"
shows told.txt "back into the queue \(restart 1 of at most 10\)"
went_on told

job=$(submit spent -n 2 -- troupe.sbatch "$PWD/stands-still" "${problem[@]}" "${saving[@]}" spent --json spent.json --restart-budget 0)
wait_until 300 "a state on disk" state_on_disk spent
wait_until 300 "the end of the first start" returns spent
ended spent "$job" 0 1
went_on spent

# The fault is among the options, so the restart meets it again.
job=$(TROUPE_JOB_MAX_RESTARTS=1 submit capped -n 2 -- troupe.sbatch troupe-cg "${problem[@]}" "${saving[@]}" capped --restart-budget 0 --fault kill@50:1)
ended capped "$job" 75 1
shows capped.txt "^troupe-cg: budget_exhausted" 2
shows capped.txt "1 restarts are as many as TROUPE_JOB_MAX_RESTARTS allows"
note "capped: a budget that is spent at every start; one restart, then status 75"
note passed
