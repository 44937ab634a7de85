# shellcheck shell=bash disable=SC2034  # the variables are for those who source this
# What the tests of clusters share. A test is a script that sources this, then enters a capsule: namespaces of its own for
# processes, mounts, network, host name and IPC. Whatever it starts (daemons, jobs, hosts) ends with it, however it ends,
# and outside of its temporary folder it changes nothing. To be sourced; CTest gives the rest:
#
#   TEST.sh BIN-FOLDER SCRIPTS-FOLDER [ARGUMENT...]
#
# Exit status: 0 passed, 1 failed, 77 skipped, with the reason on the last line.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$1
scripts=$2

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}
skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
note() { printf -- '-- %5.1f s  %s\n' "$(($(date +%s%N) / 1000000 - started_ms))e-3" "$*"; }

need_programs() {
  local program missing=()
  for program in "$@"; do command -v "$program" >/dev/null || missing+=("$program"); done
  ((${#missing[@]} == 0)) || skip "not installed: ${missing[*]}"
}

# enter_capsule ARGUMENT...: starts the script again with its arguments in a capsule; inside, sets work, a folder that
# goes with it.
enter_capsule() {
  if [[ -z ${IN_CAPSULE:-} ]]; then
    need_programs unshare ip
    ((EUID == 0)) || skip "network namespaces and daemons of their own want root"
    local reason
    reason=$(unshare --net --mount --uts --ipc --pid --fork --mount-proc true 2>&1) ||
      skip "this container may not make namespaces ($reason)"
    work=$(mktemp -d)
    local status=0
    IN_CAPSULE=$work unshare --net --mount --uts --ipc --pid --fork --mount-proc --kill-child "$0" "$@" || status=$?
    rm -rf "$work"
    exit "$status"
  fi
  work=$IN_CAPSULE
  unset IN_CAPSULE
  started_ms=$(($(date +%s%N) / 1000000))
  PATH=$bin:$PATH:/usr/sbin:/sbin
  # What the machine's site file or the caller's settings say is no part of the test.
  unset "${!TROUPE_@}" "${!SLURM_@}" "${!OMPI_@}"
  export TROUPE_SITE_CONFIG='' TROUPE_ENGINE=cpu TROUPE_LOG_LEVEL=error
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
  export OMPI_MCA_btl_vader_single_copy_mechanism=none
  mount -t tmpfs tmpfs /run
  # Names are resolved for hosts that have some address besides 127.0.0.1 only (AI_ADDRCONFIG).
  ip link set lo up
  ip addr add 192.0.2.1/32 dev lo
  hostname node1
  printf '127.0.0.1 localhost node1\n' >"$work/hosts"
  mount --bind "$work/hosts" /etc/hosts
  cd "$work" || fail "no folder $work"
}

# wait_until SECONDS WHAT COMMAND...: polls until the command succeeds.
wait_until() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < end)) || fail "not within the time allowed: $what"
    sleep 0.1
  done
}

# shows FILE PATTERN [COUNT]: so many lines of the file (default: 1) match the extended regular expression
shows() {
  local found
  found=$(grep -cE -- "$2" "$1") || true
  [[ $found == "${3:-1}" ]] || { cat "$1" && fail "$1: $found lines match '$2', not ${3:-1}"; }
}

# value FILE KEY: of a report (JSON, one member per line), the first of that name
value() { sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$1" | head -n 1; }

# within BOUND NUMBER: whether |NUMBER| <= BOUND
within() { awk -v bound="$1" -v x="$2" 'BEGIN { exit !(x != "" && x <= bound && -x <= bound) }'; }
