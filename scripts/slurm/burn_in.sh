# shellcheck shell=bash disable=SC2154  # nodes, tasks_per_node, lost_nodes, job_folder: from env.sh
# Puts the nodes of a Slurm job under load before its program starts (troupe-info --burn-in), and leaves out the nodes whose
# devices compute wrongly, lose data or are slow. To be sourced after env.sh.

# How long a burn-in may take beyond the time that was asked for: ranks start, devices are opened, connections are made.
readonly burn_in_slack_s=300

# seconds_in DURATION: whole seconds, rounded up; status 1: it is no duration such as 60s
seconds_in() {
  [[ $1 =~ ^([0-9]{1,6})(\.[0-9]+)?(ms|s|min|h)$ ]] || return 1
  local count=$((10#${BASH_REMATCH[1]} + 1))
  case ${BASH_REMATCH[3]} in
    ms) echo $((count / 1000 + 1)) ;;
    s) echo "$count" ;;
    min) echo $((count * 60)) ;;
    h) echo $((count * 3600)) ;;
  esac
}

# node_of HOST: the name by which Slurm knows the host, which may call itself by a longer or shorter one; status 1: no node
# of this job has that name.
node_of() {
  local name names
  mapfile -t names < <(scontrol show hostnames "${SLURM_JOB_NODELIST:-}")
  for name in "${names[@]}"; do
    if [[ $name == "$1" ]]; then echo "$name" && return; fi
  done
  for name in "${names[@]}"; do
    if [[ ${name%%.*} == "${1%%.*}" ]]; then echo "$name" && return; fi
  done
  return 1
}

# found_on HOST OUTPUT: the check that failed on the host, with its finding. A check that failed on several ranks names the
# first of them and counts the others.
found_on() {
  local failed
  failed=$(sed -n '/^failed /{s///;s/^ *//;s/   */: /;p}' "$2")
  grep -m 1 -F -- " ($1, " <<<"$failed" || grep -m 1 ', [^)]*) (and [0-9]* more rank' <<<"$failed" || echo "see above"
}

# leave_out_hosts LIST OUTPUT: names the nodes and adds them to the lost ones.
leave_out_hosts() {
  local host node
  for host in ${1//,/ }; do
    if node=$(node_of "$host"); then
      printf '%s\n' "$node" >>"$lost_nodes"
      say "bad node $node: $(found_on "$host" "$2")"
    else
      say "warning: the burn-in calls host $host bad, which is no node of this job by that name: it is not left out"
    fi
  done
}

# USR1 to the batch script during the burn-in: there is no state to write yet.
end_burn_in() {
  interrupted=yes told=yes
  [[ -z $step ]] || kill -TERM "$step" 2>/dev/null || true
}

# burn_in_nodes: does so on all nodes of the job, the spare ones too, with as many tasks on each as the program has there.
# Without TROUPE_JOB_BURN_IN it does nothing. Nodes that it finds bad go to the file of lost nodes. To be called after
# launch_by_troupe_run.
burn_in_nodes() {
  local time=${TROUPE_JOB_BURN_IN:-0} output=$job_folder/burn-in limit verdict launch
  local status=0 told=no step=
  # shellcheck disable=SC2034  # read by wait_for_step
  local interrupted=no
  [[ $time != 0 ]] || return 0
  limit=$(seconds_in "$time") || die "TROUPE_JOB_BURN_IN is '$time', which is not a duration such as 60s or 5min"
  limit=$((limit + burn_in_slack_s))
  launch_command $((nodes * tasks_per_node))
  # Spare places and faults are the program's.
  launch+=(troupe-info --burn-in "$time" --on-rank-loss stop --spares 0)
  say "${launch[*]}"
  trap end_burn_in USR1
  # Ranks that leave with status 1 must not have mpirun end rank 0 before its last line is out.
  env -u TROUPE_FAULT -u TROUPE_JSON OMPI_MCA_orte_abort_on_non_zero_status=0 \
    timeout --kill-after=10 "$limit" "${launch[@]}" </dev/null >"$output" &
  step=$!
  [[ $told == no ]] || end_burn_in
  wait_for_step
  trap - USR1
  cat "$output"
  if [[ $told == yes ]]; then
    say "signal USR1: the burn-in has been stopped, and the program is not started"
    requeue_or_exit 75
  fi
  verdict=$(sed -n 's/^burn-in: //p' "$output" | tail -n 1)
  case $verdict in
    "no bad host") ;;
    "bad hosts: "*) leave_out_hosts "${verdict#bad hosts: }" "$output" ;;
    *)
      ((status != 124 && status != 137)) || verdict="not over after $limit s"
      say "warning: no burn-in (${verdict:-no verdict}, status $status): the job goes on with all of its nodes"
      ;;
  esac
}
