# shellcheck shell=bash disable=SC2154  # work, here: from common.sh
# Several hosts on one machine: h1, h2, ... are network namespaces at 10.77.0.1, 10.77.0.2, ... on one bridge, which
# has 10.77.0.254. What runs
# on a host has that host's name, /etc/hosts, /dev/shm, System V IPC and processes, so ranks on two hosts share nothing
# but the network and the file system. To be sourced after common.sh, used within a capsule.
#
# As on many real hosts, a host's own name resolves to 127.0.1.1 on itself (Debian's installer writes that), and each has
# a bridge for containers whose address, 172.17.0.1, is the same everywhere: neither leads from one to another.

# raise_hosts N
raise_hosts() {
  local count=$1 i j reason
  reason=$(ip link add bridge0 type bridge 2>&1) || skip "this machine has no network bridges ($reason)"
  ip link set bridge0 up
  ip addr add 10.77.0.254/24 dev bridge0
  for ((i = 1; i <= count; ++i)); do
    reason=$(ip netns add "h$i" 2>&1) || skip "network namespaces cannot be named here ($reason)"
    ip link add "port$i" type veth peer name eth0 netns "h$i"
    ip link set "port$i" master bridge0 up
    ip -n "h$i" link set lo up
    ip -n "h$i" link add docker0 type bridge
    ip -n "h$i" addr add 172.17.0.1/16 dev docker0
    ip -n "h$i" link set docker0 up
    ip -n "h$i" addr add "10.77.0.$i/24" dev eth0
    ip -n "h$i" link set eth0 up
    {
      echo "127.0.0.1 localhost"
      echo "127.0.1.1 h$i"
      for ((j = 1; j <= count; ++j)); do ((j == i)) || echo "10.77.0.$j h$j"; done
    } >"$work/hosts.h$i"
  done
  export HOSTS_FOLDER=$work
  note "$count hosts are up"
}

# on_host HOST COMMAND...
on_host() {
  local host=$1
  shift
  "$here/lib/launch_agent" "$host" "$(printf '%q ' "$@")"
}

# For tests that lose hosts. Processes of a host are not to end with the first of them: mpirun would take that for a host
# that has never come up.
raise_hosts_to_lose() {
  export HOSTS_SHARE_PROCESSES=1
  current=plain # the job that is under way: its output is in the file of that name
  trap explain EXIT
  raise_hosts "$1"
}
# Prints the output of a job that fails, and the processes that are left.
explain() {
  local status=$?
  ((status == 0 || status == 77)) && return
  tail -n 60 "$work/$current.txt" >&2
  ps -eo pid,ppid,stat,etimes,args | cut -c1-200 >&2
}
# from_h6 COMMAND...: on h6, with the variables by which mpirun starts daemons on the other hosts; at most two minutes
from_h6() {
  on_host h6 env OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$here/lib/launch_agent" OMPI_MCA_plm_rsh_no_tree_spawn=1 \
    OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self \
    timeout --signal=KILL 120 "$@"
}
# processes_of HOST [PATTERN]: their numbers
processes_of() {
  local pid
  for pid in $(ip netns pids "$1"); do
    [[ -z ${2:-} ]] || { tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "$2"; } || continue
    printf '%s\n' "$pid"
  done 2>/dev/null
}
kill_host() { processes_of "$1" | xargs -r kill -KILL 2>/dev/null || true; }
# A host whose cable has been out needs a moment: until then mpirun would wait for its daemon for ever.
is_reached() { [[ $(ip netns exec "$1" timeout 1 bash -c 'exec 3<>/dev/tcp/10.77.0.6/9' 2>&1) == *refused* ]]; }

# mpirun_on RANKS-PER-HOST HOSTS PROGRAM...: mpirun, started on h1, over h1..hN; at most MPIRUN_LIMIT seconds (300)
mpirun_on() {
  local per_host=$1 count=$2 list='' i
  shift 2
  for ((i = 1; i <= count; ++i)); do list+=${list:+,}h$i:$per_host; done
  # Open MPI, too, must not take the address that all hosts have. Its daemons stay attached: a host's processes end with
  # the first of them.
  on_host h1 env OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$here/lib/launch_agent" OMPI_MCA_plm_rsh_no_tree_spawn=1 \
    OMPI_MCA_orte_leave_session_attached=1 \
    OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self \
    timeout --signal=KILL "${MPIRUN_LIMIT:-300}" mpirun --host "$list" -n $((per_host * count)) --bind-to none "$@" </dev/null
}
