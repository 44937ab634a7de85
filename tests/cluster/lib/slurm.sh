# shellcheck shell=bash disable=SC2154  # work: from common.sh
# A Slurm of one machine: munged, slurmctld and slurmd on loopback, everything in one folder. To be sourced after
# common.sh, used within a capsule.

# slurm_configuration FOLDER CORES GPUS: writes slurm.conf and what goes with it.
slurm_configuration() {
  local folder=$1 cores=$2 gpus=$3 i
  mkdir -p "$folder"/{munge,state,log,run,dev,spool,tmp}
  chmod 755 "$folder" "$folder/munge"
  (umask 077 && head -c 128 /dev/urandom >"$folder/munge/key")
  cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=node1(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# A requeued job waits until credentials have expired; 5 s is the least.
AuthInfo=socket=$folder/munge/sock,cred_expire=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
TmpFS=$folder/tmp
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
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
NodeName=node1 NodeAddr=127.0.0.1 CPUs=$cores Boards=1 SocketsPerBoard=1 CoresPerSocket=$cores ThreadsPerCore=1 RealMemory=1000 Gres=gpu:$gpus State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  # GPUs to be counted and handed out: any character device will do.
  for ((i = 0; i < gpus; ++i)); do ln -sfn /dev/null "$folder/dev/gpu$i"; done
  echo "Name=gpu File=$folder/dev/gpu[0-$((gpus - 1))]" >"$folder/gres.conf"
  # slurmd loads a plugin for cgroups even where none are used. Only newer ones can be told not to; v1 asks for nothing.
  local plugin=cgroup/v1
  [[ $(printf '%s\n' 24.05 "$(slurmd -V | awk '{ print $2 }')" | sort -V | head -n 1) != 24.05 ]] || plugin=disabled
  echo "CgroupPlugin=$plugin" >"$folder/cgroup.conf"
}

start_daemon() { "$@" || { tail -n 5 "$work"/slurm/log/*.log >&2 && fail "$1 does not start"; }; }
all_nodes_idle() { [[ $(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l) -ge 1 ]]; }

# start_slurm CORES GPUS: a cluster of one node; from here on SLURM_CONF names it. The capsule ends it.
start_slurm() {
  need_programs munged slurmctld slurmd sbatch srun scontrol
  local folder=$work/slurm
  slurm_configuration "$folder" "$1" "$2"
  export SLURM_CONF=$folder/slurm.conf
  # Loopback is the only network in the capsule, and Open MPI leaves it out unless told otherwise.
  export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
  start_daemon munged --force --socket="$folder/munge/sock" --key-file="$folder/munge/key" --pid-file="$folder/munge/pid" \
    --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" --num-threads=2
  start_daemon slurmctld -f "$SLURM_CONF"
  start_daemon slurmd -N node1 -f "$SLURM_CONF"
  wait_until 30 "a node of Slurm that is idle: $(tail -n 3 "$folder"/log/*.log)" all_nodes_idle
  srun --mpi=list 2>&1 | grep -qw pmix || skip "this Slurm has no plugin for PMIx (libpmix-dev)"
  note "Slurm is up: $(slurmd -V), one node, $1 cores, $2 GPUs (of no use but to be counted)"
}

job_state() { scontrol -o show job "$1" 2>/dev/null | sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p'; }
job_ended() { [[ $(job_state "$1") =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY|BOOT_FAIL)$ ]]; }
job_exit() { scontrol -o show job "$1" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p'; }
job_restarts() { scontrol -o show job "$1" | sed -n 's/.* Restarts=\([0-9]*\).*/\1/p'; }

# hurry JOB: Slurm lets a requeued job wait until its credential has expired; it can start before.
job_waits() { [[ $(job_state "$1") == PENDING ]]; }
hurry() { scontrol update JobId="$1" StartTime=now; }

# wait_for_job JOB SECONDS OUTPUT: until it has ended; sees to it that it never waits in the queue.
wait_for_job() {
  local end=$((SECONDS + $2))
  until job_ended "$1"; do
    ((SECONDS < end)) || { cat "$3" && fail "job $1 is still $(job_state "$1") after $2 s"; }
    ! job_waits "$1" || hurry "$1" 2>/dev/null || true
    sleep 0.2
  done
}
