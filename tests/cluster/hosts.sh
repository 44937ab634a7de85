#!/usr/bin/env bash
# hosts.sh BIN-FOLDER SCRIPTS-FOLDER: jobs over several hosts that share no memory, by mpirun over a launch agent:
# collectives, tokens and more of the world's own tests, recovery, and the choice of the network.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/hosts.sh"
enter_capsule "$@"

# Cases of troupe-mpi-tests that must pass across hosts as they do on one.
readonly cases=(collectives collective_check reformation checkpoint tokens token_order token_faults token_errors token_remote
  shrink grow)
readonly solve=(troupe-cg --stencil 12 --tol 1e-10 --check-every 5 --commit-every 10)

need_programs mpirun
raise_hosts 3

# succeeds NAME COMMAND...: its output is in NAME.txt
succeeds() {
  local name=$1 status=0
  shift
  "$@" >"$name.txt" 2>&1 || status=$?
  ((status == 0)) || { cat "$name.txt" && fail "$name: exit status $status"; }
}

succeeds info mpirun_on 2 2 troupe-info --standby off
for host in h1 h2; do shows info.txt "host $host \(local rank [01]\)" 2; done
note "2 x 2 ranks, each host with local ranks of its own"

mkdir shared
succeeds check mpirun_on 2 2 troupe-info --check --checkpoint-dir "$work/shared"
shows check.txt "^failed" 0
shows check.txt "^ok +saved states +$work/shared: all ranks see the same folder"
shows check.txt "^ok +(all_reduce|peer access) " 2
status=0
mpirun_on 2 2 troupe-info --check --checkpoint-dir /dev/shm >apart.txt 2>&1 || status=$?
((status == 1)) || { cat apart.txt && fail "a folder that the hosts do not share: exit status $status"; }
shows apart.txt "^failed +saved states +/dev/shm: rank 2 \(h2\) \(and 1 more rank\): it is not the folder that rank 0 sees"
shows apart.txt "^ok +(all_reduce|versions) " 2
note "the job is looked over across both hosts"

for name in "${cases[@]}"; do
  options=(--restart-budget 1000)
  [[ $name == collective_check ]] && options=(--check collectives)
  [[ $name == token_faults ]] && options+=(--replay off) # else nothing that is written is lost
  [[ $name == shrink ]] && options=(--on-loss shrink --restart-budget 0 --rejoin-after 0s --partner every)
  [[ $name == grow ]] && options=(--on-loss shrink --restart-budget 0 --rejoin-after 200ms)
  succeeds "$name" mpirun_on 2 2 troupe-mpi-tests --case "$name" "${options[@]}"
  note "2 x 2 ranks: $(tail -n 1 "$name.txt")"
done

for name in tokens token_order token_faults; do
  succeeds "$name-nccl" mpirun_on 2 2 troupe-mpi-tests --case "$name" --token-path nccl --restart-budget 1000 --replay off
  note "2 x 2 ranks, --token-path nccl: $(tail -n 1 "$name-nccl.txt")"
done

succeeds plain mpirun_on 1 3 "${solve[@]}" --json plain.json
succeeds fault mpirun_on 1 3 "${solve[@]}" --json fault.json --fault kill@15:1 --fault kill@25:2
shows fault.json '"kind": "kill"' 2
for key in iterations relative_residual; do
  [[ $(value plain.json "$key") == "$(value fault.json "$key")" ]] ||
    fail "$key: $(value plain.json "$key") without faults, $(value fault.json "$key") with them"
done
within 1e-8 "$(value fault.json relative_error)" || fail "the answer is off by $(value fault.json relative_error)"
note "3 x 1 ranks, two device hosts killed: the same answer after as many iterations as without"

succeeds named mpirun_on 1 2 "${solve[@]}" --gloo-interface eth0
status=0
mpirun_on 1 2 "${solve[@]}" --gloo-interface eth7 >unknown.txt 2>&1 || status=$?
{ ((status == 2)) && grep -q "gloo-interface: there is no network interface eth7" unknown.txt; } ||
  { cat unknown.txt && fail "an interface that is not there: exit status $status"; }
note "the network interface that is named is taken, or its absence said"
note passed
