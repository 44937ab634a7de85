# shellcheck shell=bash disable=SC2154  # work, scripts: from common.sh
# A Slurm of one machine: munged and slurmctld, and a slurmd for each node; everything in one folder. To be sourced after
# common.sh, used within a capsule.

# slurm_configuration FOLDER CORES GPUS ADDRESS NODE=ADDRESS...: writes slurm.conf and what goes with it. The first address
# is slurmctld's.
slurm_configuration() {
  local folder=$1 cores=$2 gpus=$3 address=$4 node i
  shift 4
  mkdir -p "$folder"/{munge,state,log,run,dev}
  chmod 755 "$folder" "$folder/munge"
  (umask 077 && head -c 128 /dev/urandom >"$folder/munge/key")
  cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=node1($address)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# A requeued job waits until credentials have expired; 5 s is the least.
AuthInfo=socket=$folder/munge/sock,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
TmpFS=$folder/tmp.%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
# Tasks are bound when a job asks for it: in a container the cores that Slurm would choose may be others' than ours.
TaskPlugin=task/affinity
TaskPluginParam=None
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1,bf_interval=1
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MinJobAge=600
GresTypes=gpu
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
NodeName=DEFAULT CPUs=$cores Boards=1 SocketsPerBoard=1 CoresPerSocket=$cores ThreadsPerCore=1 RealMemory=1000 Gres=gpu:$gpus State=UNKNOWN
CONF
  for node in "$@"; do
    mkdir "$folder/spool.${node%=*}" "$folder/tmp.${node%=*}"
    echo "NodeName=${node%=*} NodeAddr=${node#*=}" >>"$folder/slurm.conf"
  done
  # By default the nodes' PMIx servers connect to each other in two ways at once, and MPI_Init fails now and then.
  echo "PMIxDirectConn=false" >"$folder/mpi.conf"
  # GPUs to be counted and handed out: any character device will do.
  for ((i = 0; i < gpus; ++i)); do ln -sfn /dev/null "$folder/dev/gpu$i"; done
  echo "Name=gpu File=$folder/dev/gpu[0-$((gpus - 1))]" >"$folder/gres.conf"
  # slurmd loads a plugin for cgroups even where none are used. Only newer ones can be told not to; v1 asks for nothing.
  local plugin=cgroup/v1
  [[ $(printf '%s\n' 24.05 "$(slurmd -V | awk '{ print $2 }')" | sort -V | head -n 1) != 24.05 ]] || plugin=disabled
  echo "CgroupPlugin=$plugin" >"$folder/cgroup.conf"
}

start_daemon() { "$@" || { tail -n 5 "$work"/slurm/log/*.log >&2 && fail "$1 does not start"; }; }
idle_nodes() { [[ $(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l) == "$1" ]]; }

# start_controller: what all nodes need; the configuration is written.
start_controller() {
  local folder=$work/slurm
  export SLURM_CONF=$folder/slurm.conf
  start_daemon munged --force --socket="$folder/munge/sock" --key-file="$folder/munge/key" \
    --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" --num-threads=2
  start_daemon slurmctld -f "$SLURM_CONF"
}
# slurm_is_up NODES
slurm_is_up() {
  wait_until 30 "idle nodes: $(tail -n 3 "$work"/slurm/log/*.log)" idle_nodes "$1"
  srun --mpi=list 2>&1 | grep -qw pmix || skip "this Slurm has no plugin for PMIx (libpmix-dev)"
  note "Slurm is up: $(slurmd -V), nodes: $(sinfo -h -o %N)"
}

# start_slurm CORES GPUS: a cluster of one node; from here on SLURM_CONF names it. The capsule ends it.
start_slurm() {
  need_programs munged slurmctld slurmd sbatch srun scontrol
  slurm_configuration "$work/slurm" "$1" "$2" 127.0.0.1 node1=127.0.0.1
  # Loopback is the only network in the capsule, and Open MPI leaves it out unless told otherwise.
  export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
  start_controller
  start_daemon slurmd -N node1 -f "$SLURM_CONF"
  slurm_is_up 1
}

# start_slurm_on_hosts CORES GPUS HOSTS: so many of the hosts that lib/hosts.sh has raised are the nodes.
start_slurm_on_hosts() {
  local count=$3 nodes=() i
  need_programs munged slurmctld slurmd sbatch srun scontrol
  for ((i = 1; i <= count; ++i)); do nodes+=("h$i=10.77.0.$i"); done
  slurm_configuration "$work/slurm" "$1" "$2" 10.77.0.254 "${nodes[@]}"
  export OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl_tcp_if_include=eth0
  start_controller
  for ((i = 1; i <= count; ++i)); do on_host "h$i" slurmd -D -N "h$i" -f "$SLURM_CONF" >/dev/null 2>&1 & done
  slurm_is_up "$count"
}

job_state() { scontrol -o show job "$1" 2>/dev/null | sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p'; }
job_ended() { [[ $(job_state "$1") =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY|BOOT_FAIL)$ ]]; }
job_exit() { scontrol -o show job "$1" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p'; }
job_restarts() { scontrol -o show job "$1" | sed -n 's/.* Restarts=\([0-9]*\).*/\1/p'; }

# wait_for_job JOB SECONDS OUTPUT: until it has ended. Slurm lets a requeued job wait until its credential has expired; it
# can start before, but a credential of the same second as the end of the last start counts as revoked.
wait_for_job() {
  local end=$((SECONDS + $2)) waiting_since=
  until job_ended "$1"; do
    ((SECONDS < end)) || { cat "$3" && fail "job $1 is still $(job_state "$1") after $2 s"; }
    if [[ $(job_state "$1") != PENDING ]]; then
      waiting_since=
    elif ((SECONDS - ${waiting_since:=$SECONDS} >= 2)); then
      scontrol update JobId="$1" StartTime=now 2>/dev/null || true
    fi
    sleep 0.2
  done
}

# submit NAME [SBATCH-OPTION...] -- SCRIPT ARGUMENT...: one of the job scripts; its output goes to NAME.txt. Prints the
# job's number.
submit() {
  local name=$1 options=()
  shift
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  sbatch --parsable -o "$name.txt" "${options[@]}" "$scripts/slurm/$2" "${@:3}"
}

# ended NAME JOB [STATUS [RESTARTS]]: waits for the job; that is how it has to end (default: status 0, no restart)
ended() {
  wait_for_job "$2" 300 "$1.txt"
  [[ $(job_exit "$2") == "${3:-0}" && $(job_restarts "$2") == "${4:-0}" ]] || {
    cat "$1.txt"
    fail "$1: exit status $(job_exit "$2") after $(job_restarts "$2") restarts, not ${3:-0} after ${4:-0}"
  }
}

# succeeds NAME [SBATCH-OPTION...] -- SCRIPT ARGUMENT...: a job that ends with status 0 at its first try
succeeds() { ended "$1" "$(submit "$@")"; }
