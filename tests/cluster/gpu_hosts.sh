#!/usr/bin/env bash
# gpu_hosts.sh BIN-FOLDER SCRIPTS-FOLDER OUT-FOLDER [namespaces|hostid]: two hosts of one GPU each on a machine with two.
# The unique id, the communicator and everything in it go over the network; so do tokens. Collectives, aborts, standby
# worlds, the recovery from every kind of fault, a rank that is lost and comes back; what each takes goes to
# OUT-FOLDER/hosts.json, a line for each figure, and the programs' own reports beside it.
#
# A host is a network namespace (see lib/hosts.sh) that is shown one GPU. Where namespaces cannot be made, the two ranks
# share the machine, and NCCL takes them for two hosts (NCCL_HOSTID) that reach each other by sockets alone; troupe then
# has one node, and tokens are told to take the network. The last line says which of the two it was. Without the fourth
# argument the first that is possible is taken.
#
# TROUPE_TEST_BACKEND=cpu: the same without GPUs.
set -euo pipefail
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")

if [[ -z ${4:-} ]]; then
  status=0
  TROUPE_TEST_BACKEND=${TROUPE_TEST_BACKEND:-cuda} "$self" "$1" "$2" "$3" namespaces || status=$?
  ((status == 77)) || exit "$status"
  exec "$self" "$1" "$2" "$3" hostid
fi

engine=${TROUPE_TEST_BACKEND:-cuda} out=$3 way=$4
cuda_path=${LD_LIBRARY_PATH:-}
source "$(dirname "$0")/lib/common.sh"
if [[ $way == namespaces ]]; then
  source "$here/lib/hosts.sh"
  enter_capsule "$@"
  need_programs mpirun
  raise_hosts 2
else
  # shellcheck source=../../scripts/lib/build.sh
  source "$scripts/lib/build.sh"
  mpi_environment
  unset "${!TROUPE_@}"
  PATH=$bin:$PATH
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  started_ms=$(($(date +%s%N) / 1000000))
fi
export TROUPE_ENGINE=$engine TROUPE_SITE_CONFIG='' TROUPE_LOG_LEVEL=error TROUPE_FLIGHT_DIR=none
[[ -z $cuda_path ]] || export LD_LIBRARY_PATH=$cuda_path
# Sockets are all there is between two hosts; multicast within NVSwitches keeps state there.
export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0
export MPIRUN_LIMIT=150

# What runs on a host, as one: h1 is shown the first GPU, h2 the second.
cat >"$work/on_host" <<'HOST'
#!/bin/sh
if [ "$1" = namespaces ]; then
  host=$(hostname)
  export CUDA_VISIBLE_DEVICES=$((${host#h} - 1)) NCCL_SOCKET_IFNAME=eth0
else
  export NCCL_HOSTID="host$OMPI_COMM_WORLD_RANK" TROUPE_TOKEN_PATH=network
fi
shift
exec "$@"
HOST
chmod +x "$work/on_host"

# on_two COMMAND...: a rank on each of the hosts
on_two() {
  if [[ $way == namespaces ]]; then
    mpirun_on 1 2 "$work/on_host" "$way" "$@"
  else
    timeout --signal=KILL "$MPIRUN_LIMIT" mpirun -n 2 --oversubscribe --bind-to none "$work/on_host" "$way" "$@" </dev/null
  fi
}

# succeeds NAME COMMAND...: its output is in OUT/hosts-NAME.log; the time it took is a figure. What fails is told at the end, too: what
# follows is tried, as machines with GPUs are rare
: >"$out/hosts.json"
failures=()
succeeds() {
  local name=$1 status=0 log=$out/hosts-$1.log began
  shift
  began=$(date +%s%N)
  on_two "$@" >"$log" 2>&1 || status=$?
  if ((status != 0)); then
    tail -n 20 "$log"
    failures+=("$name: exit status $status")
    return 1
  fi
  note "$name: $(tail -n 1 "$log")"
  figure "$name, the whole job" "$((($(date +%s%N) - began) / 1000000))" ms
}
figure() { printf '{"name":"%s","value":%s,"unit":"%s","hosts":"%s"}\n' "$1" "$2" "$3" "$way" >>"$out/hosts.json"; }

# field LINE KEY: of a JSON object on one line
field() { sed -n -e "s/.*\"$2\":\"\([^\"]*\)\".*/\1/p" -e t -e "s/.*\"$2\":\([^\",}]*\).*/\1/p" <<<"$1"; }

if [[ $way == namespaces ]]; then
  # Not every container lets a GPU be used from a namespace.
  on_two troupe-info >"$out/hosts-info.log" 2>&1 ||
    skip "no job starts on network namespaces here ($(tail -n 1 "$out/hosts-info.log"))"
fi
succeeds info troupe-info || true
if [[ $way == namespaces ]]; then
  for host in h1 h2; do shows "$out/hosts-info.log" "host $host \(local rank 0\)"; done
fi

many=(--restart-budget 1000)
for name in collectives collective_check reformation checkpoint absent hidden_fault independence tokens token_order \
  token_faults token_errors token_remote grow; do
  options=("${many[@]}")
  [[ $name == token_faults ]] && options+=(--replay off)  # else nothing that is written is lost
  [[ $name == collective_check ]] && options=(--check collectives)
  [[ $name == absent || $name == hidden_fault ]] && options=(--op-timeout 1s --heartbeat-timeout 1s)
  [[ $name == grow ]] && options=(--on-loss shrink --restart-budget 0 --rejoin-after 200ms)
  succeeds "$name" troupe-mpi-tests --case "$name" "${options[@]}" || true
done
for name in tokens token_order token_faults; do
  succeeds "$name-nccl" troupe-mpi-tests --case "$name" --token-path nccl --replay off "${many[@]}" || true
done

# From a fault to the next verified all_reduce, by every way there is.
kinds=kill,segv,hang
[[ $engine == cuda ]] && kinds+=,illegal-address,trap,assert,misaligned
for standby in world local off; do
  report=$out/hosts-drill-$standby.json
  succeeds "drill-$standby" troupe-drill --standby $standby --kinds $kinds --repetitions 2 --kept 16MiB \
    --heartbeat-timeout 1s --json "$report" "${many[@]}" || continue
  while read -r line; do
    [[ $line == *wall_ms_median* ]] || continue
    figure "$(field "$line" name): fault to verified all_reduce" "$(field "$line" wall_ms_median)" ms
  done <"$report"
done

# The solver, undisturbed and with a fault of each rank: the same answer in as many iterations.
solve=(troupe-cg --stencil 32 --tol 1e-10 --check-every 5 --commit-every 10)
if succeeds cg "${solve[@]}" --json "$out/hosts-cg.json" &&
  succeeds cg-faults "${solve[@]}" --json "$out/hosts-cg-faults.json" --fault kill@15:1 --fault kill@25:0; then
  shows "$out/hosts-cg-faults.json" '"repeated_iterations"' 2
  [[ $(value "$out/hosts-cg.json" iterations) == "$(value "$out/hosts-cg-faults.json" iterations)" ]] ||
    failures+=("the faults have changed the number of iterations")
fi

if [[ -x $bin/token_bench ]]; then
  touch "$out/hosts-tokens.json" "$out/hosts-tokens-nccl.json"
  succeeds token_bench token_bench --token-path network --repetitions 5 --size 256MiB --json "$out/hosts-tokens.json" || true
  while read -r line; do
    [[ $line == *ratio* ]] || continue
    figure "$(field "$line" name) over the network" "$(field "$line" troupe)" "$(field "$line" unit)"
    figure "$(field "$line" name) over the network, troupe/MPI" "$(field "$line" ratio)" x
  done <"$out/hosts-tokens.json"
  succeeds token_bench_nccl token_bench --token-path nccl --repetitions 5 --size 256MiB --json "$out/hosts-tokens-nccl.json" || true
  while read -r line; do
    [[ $line == *ratio* ]] || continue
    figure "$(field "$line" name) by NCCL" "$(field "$line" troupe)" "$(field "$line" unit)"
  done <"$out/hosts-tokens-nccl.json"
fi
if ((${#failures[@]} > 0)); then
  for failure in "${failures[@]}"; do note "FAILED: $failure"; done
  exit 1
fi
if [[ $way == namespaces ]]; then
  note "passed on two network namespaces"
else
  note "passed with NCCL_HOSTID, on one host"
fi
