#!/usr/bin/env bash
# lost_hosts.sh BIN-FOLDER SCRIPTS-FOLDER mpirun|srun brief|full: jobs whose hosts are lost while they run, killed or cut off
# from the network: a spare place takes the rank, and the result is that of a job that loses nothing. By scripts/troupe-run.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/hosts.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
readonly by=$3 amount=$4

program=(troupe-heat --points "10,8,6" --steps 600 --together 4 --commit-every 20) at=200
readonly survives=(--rank-silence 2s --respawn-wait 500ms)

need_programs mpirun
raise_hosts_to_lose 6 # ranks 0, 1, 2 on h1, h2, h3; two spare places; mpirun itself is started on h6

# launch PROGRAM...: five processes, one on each of h1 ... h5
launch() {
  if [[ $by == srun ]]; then
    timeout --signal=KILL 120 salloc -Q -N 5 -w h1,h2,h3,h4,h5 "$scripts/troupe-run" -n 5 --ntasks-per-node=1 -- "$@"
  else
    from_h6 "$scripts/troupe-run" --host h1:1,h2:1,h3:1,h4:1,h5:1 -n 5 --bind-to none -- "$@"
  fi
}

rank_is_stopped() { # HOST
  local pid
  for pid in $(processes_of "$1" "${program[0]}"); do
    [[ $(sed 's/.*) //; s/ .*//' "/proc/$pid/stat") == T ]] && return 0
  done 2>/dev/null
  return 1
}
no_process_of() { [[ -z $(processes_of "$1" 'troupe-[hckd]') ]]; }

# struck NAME HOW HOST STATUS [OPTION...]: the host is struck when its rank, which stops itself for that, has come to step $at
struck() {
  local name=$1 how=$2 host=$3 expected=$4 status=0 job
  shift 4
  current=$name
  launch "${program[@]}" "${survives[@]}" --fault "stop@$at:$((host - 1))" --json "$name.json" "$@" >"$name.txt" 2>&1 &
  job=$!
  wait_until 60 "$name: the rank on h$host stops" rank_is_stopped "h$host"
  case $how in
    kill) kill_host "h$host" ;;
    cut*) ip link set "port$host" down ;;
  esac
  if [[ $how == cut-for-a-while ]]; then
    sleep 0.7
    ip link set "port$host" up
  fi
  wait "$job" || status=$?
  ((status == expected)) || fail "$name: exit status $status, not $expected"
  if [[ $how == cut ]]; then # the cable is in again: what is still there must find out that it is out of the job
    ip link set "port$host" up
    wait_until 30 "$name: h$host knows that it is out" no_process_of "h$host"
  fi
  wait_until 30 "$name: h$host is reached again" is_reached "h$host"
  for host in 1 2 3 4 5; do wait_until 15 "$name: nothing is left on h$host" no_process_of "h$host"; done
}
# recovered NAME KIND: once, by that, to the right result
recovered() {
  shows "$1.json" "\"kind\": \"$2\""
  shows "$1.json" '"right": true'
  [[ $(value "$1.json" largest_error) == $(value plain.json largest_error) ]] ||
    fail "$1: the result is not that of a job that loses nothing"
  note "$1: $(value "$1.json" total_ms) ms from the first sign to the new epoch"
}

if [[ $by == srun ]]; then
  start_slurm_on_hosts 2 4 5
  need_programs salloc
fi
launch "${program[@]}" --spares 2 --json plain.json >plain.txt 2>&1 || fail "a job that loses nothing"
shows plain.json '"ranks": 3'
note "three ranks, two spare places"

cases=("kill 1" "cut 2")
[[ $amount == brief ]] || cases=("kill 1" "kill 2" "kill 3" "cut 1" "cut 2" "cut 3")
[[ $by != srun ]] || cases=("kill 2" "cut 3")
for case in "${cases[@]}"; do
  read -r how host <<<"$case"
  struck "$how-h$host" "$how" "$host" 0 --spares 2
  recovered "$how-h$host" node
  if [[ $by == srun ]] && [[ $how == kill ]]; then
    on_host "h$host" slurmd -D -N "h$host" -f "$SLURM_CONF" >/dev/null 2>&1 &
    wait_until 60 "h$host is a node again" idle_nodes 5
  fi
done

if [[ $by == mpirun ]]; then
  # Not long enough to be taken for lost; its rank, which has stopped, is ended and comes back where it was.
  struck blinks cut-for-a-while 2 0 --spares 2
  recovered blinks rank
  struck nobody kill 2 75 --spares 0
  shows nobody.txt "rank 1 is lost with its node, and there is no spare place for it"
  note "without a spare place: status 75"
  program=(troupe-cg --stencil 16 --commit-every 5) at=30
  struck fewer kill 2 0 --spares 0 --on-loss shrink
  shows fewer.json '"converged": true'
  shows fewer.json '"final_ranks": 4'
  note "with --on-loss shrink: the other ranks go on"
fi
note passed
