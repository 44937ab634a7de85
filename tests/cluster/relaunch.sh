#!/usr/bin/env bash
# relaunch.sh BIN-FOLDER SCRIPTS-FOLDER srun|mpirun: jobs that end with a node are started again on those that are left, by
# troupe-run and, under Slurm, by troupe.sbatch; from the states that the nodes kept, of which each has a copy of another
# node's. No state is in the folder that all see.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/hosts.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
readonly by=$3

readonly heat=(troupe-heat --points "10,8,6" --steps 600 --together 4 --commit-every 20)
readonly saving=(--checkpoint-dir "$work/shared" --checkpoint-local "$work/local" --partner every)

need_programs mpirun
mkdir local shared
for host in h1 h2 h3 h4 h5; do mkdir "local.$host"; done
raise_hosts_to_lose 6 # three ranks on h1, h2, h3; h4 and h5 are spare; mpirun itself is started on h6

# In its first start rank 1 stands still in step 200, until its host is lost: however fast the machine is, the job has not
# ended by then.
cat >stands-still <<'END'
#!/usr/bin/env bash
[[ -e $HOSTS_FOLDER/struck ]] || set -- "$@" --fault hang@200:1 --heartbeat-timeout 600s --phase-timeout 700s --token-timeout 700s
exec troupe-heat "$@"
END
chmod +x stands-still

# lose HOST: it is gone with all that it had in memory
lose() {
  touch struck
  echo "$1" >>down
  ip link set "port${1#h}" down
  kill_host "$1"
  rm -rf "local.$1"
}
# bring_back HOST: as it is after it has been started again
bring_back() {
  rm -f down
  mkdir -p "local.$1"
  ip link set "port${1#h}" up
  wait_until 30 "$1 is reached again" is_reached "$1"
}
return_to_slurm() {
  bring_back "$1"
  on_host "$1" slurmd -D -N "$1" -f "$SLURM_CONF" >/dev/null 2>&1 &
}
# Each of three hosts has a state with its own part and another host's, and not only that of step 0.
states_are_near() {
  local host
  for host in h1 h2 h3; do
    compgen -G "local.$host/troupe-heat/step-*[1-9]*[0-9]/part-*" >/dev/null || return 1
    compgen -G "local.$host/troupe-heat/step-*[1-9]*[0-9]/copy-*" >/dev/null || return 1
  done
}
# went_on NAME: from a state that was on the nodes, to the result of a job that loses nothing; nothing is left
went_on() {
  (($(value "$1.json" restarted_from) > 0)) || fail "$1: it began at the beginning again"
  shows "$1.txt" "going on from step [0-9]+, saved by 3 ranks, from the folders of the nodes"
  [[ $(value "$1.json" largest_error) == $(value plain.json largest_error) ]] ||
    fail "$1: the result is not that of a job that loses nothing"
  ! compgen -G "shared/troupe-heat/step-*" || fail "$1: a state is in the folder that all see"
  ! compgen -G "local.*/troupe-heat" || fail "$1: states are left on the nodes behind a job that has ended well"
  note "$1: went on from step $(value "$1.json" restarted_from), to the same result"
}

if [[ $by == mpirun ]]; then
  run=(from_h6 env TROUPE_ON_RANK_LOSS=stop TROUPE_LOG_LEVEL=info "$scripts/troupe-run" --host "h1:1,h2:1,h3:1,h4:1" -n 3 --bind-to none --)
  "${run[@]}" "${heat[@]}" --json plain.json >plain.txt 2>&1 || fail "a job that loses nothing"
  current=lost
  "${run[@]}" "$PWD/stands-still" "${heat[@]:1}" "${saving[@]}" --json lost.json >lost.txt 2>&1 &
  job=$!
  wait_until 60 "states on the nodes" states_are_near
  lose h2
  wait "$job" || fail "exit status $?"
  shows lost.txt "troupe-run: lost: h2"
  shows lost.txt "troupe-run: status [0-9]+: the job is started again on h1:1 h3:1 h4:1 \(1 of at most 3 times\)"
  went_on lost

  current=few
  bring_back h2
  rm struck
  "${run[@]/,h4:1/}" "$PWD/stands-still" "${heat[@]:1}" "${saving[@]}" --json few.json >few.txt 2>&1 &
  job=$!
  wait_until 60 "states on the nodes" states_are_near
  lose h2
  status=0
  wait "$job" || status=$?
  ((status == 75)) || fail "without a node to spare: exit status $status, not 75"
  shows few.txt "troupe-run: the nodes that are left \(h1:1 h3:1\) are too few for the job: it ends with status 75"
  note "without a node to spare: status 75"
else
  start_slurm_on_hosts 2 4 5
  # By itself Slurm notices a lost node after minutes; the keepers do so within seconds.
  export TROUPE_LOG_LEVEL=info TROUPE_ON_RANK_LOSS=respawn TROUPE_RANK_SILENCE=2s
  succeeds plain -N 3 --ntasks-per-node=1 -- troupe.sbatch "${heat[@]}" --json plain.json
  readonly job_of=(--ntasks-per-node=1 -- troupe.sbatch "$PWD/stands-still" "${heat[@]:1}" "${saving[@]}")

  current=lost
  job=$(TROUPE_JOB_SPARE_NODES=1 submit lost -N 4 "${job_of[@]}" --json lost.json)
  wait_until 60 "states on the nodes" states_are_near
  lose h2
  # Slurm does not count a job as ended before all of its nodes say so.
  wait_until 60 "the end of the second start" grep -q "stands-still ended with status 0" lost.txt
  return_to_slurm h2
  ended lost "$job" 0 0
  shows lost.txt "troupe-run: lost: h2"
  shows lost.txt "troupe-run: status [0-9]+: the job is started again on h1 h3 h4 \(1 of at most 3 times\)"
  went_on lost

  current=few
  wait_until 60 "h2 is a node again" idle_nodes 5
  rm struck
  job=$(submit few -N 3 -x h5 "${job_of[@]}" --json few.json)
  wait_until 60 "states on the nodes" states_are_near
  lose h2
  wait_until 60 "it goes back into the queue" grep -q "the job will not use" few.txt
  return_to_slurm h2
  ended few "$job" 0 1
  shows few.txt "rank 1 is lost with its node, and there is no spare place for it"
  shows few.txt "troupe-run: the nodes that are left \(h1 h3\) are too few for the job: it ends with status 75"
  shows few.txt "the job will not use h2 again"
  shows few.txt "troupe: job [0-9]+ on 3 node\(s\) \(h\[1,3-4\]\), restart 1 of at most 10"
  went_on few
fi
note passed
