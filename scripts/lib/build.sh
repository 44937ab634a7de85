# What the scripts share: messages, building, the environment of mpirun. To be sourced with bash's -euo pipefail.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

say() { printf '== %s\n' "$*"; }
warn() { printf '== warning: %s\n' "$*" >&2; }
die() {
  printf '== error: %s\n' "$*" >&2
  exit 1
}

# The leading comment of a script is its help.
usage() { sed -n '2,/^[^#]/{/^#/{s/^# \{0,1\}//;p}}' "$0"; }

# accept_cmake_options ARGUMENT...: the help where it is asked for, and nothing else but options for CMake.
accept_cmake_options() {
  local option
  for option in "$@"; do
    case $option in
      -h | --help) usage && exit 0 ;;
      -D*) ;;
      *) usage >&2 && exit 2 ;;
    esac
  done
}

# How many compilers at once: one per core, but each with a GiB and a half of memory.
compilers() {
  local cores available
  cores=$(nproc)
  available=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo)
  ((available < 1)) && available=1
  echo $((cores < available ? cores : available))
}

# with_memory: sets large_heap to CMake's options for a machine with enough memory, where g++ collects its garbage at 1 GiB
# instead of 128 MiB: large files that are not optimised compile in 10 to 15% less time, others in the same.
with_memory() {
  local available option=--param=ggc-min-heapsize=1048576
  large_heap=()
  available=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  if ((available >= 4 * $(nproc))) && "${CXX:-c++}" -Werror "$option" -x c++ -fsyntax-only /dev/null &>/dev/null; then
    large_heap=("-DCMAKE_CXX_FLAGS=${CXXFLAGS:-} $option")
  fi
}

# configure PRESET FOLDER [CMAKE-OPTION...]: starts afresh where the folder was configured for another place.
configure() {
  local preset=$1 folder=$2 options=()
  shift 2
  if [[ -f $folder/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    options+=(--fresh)
  fi
  command -v ccache >/dev/null && options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  say "configuring $folder (preset $preset)"
  (cd "$root" && cmake --preset "$preset" -B "$folder" "${options[@]}" "$@")
}

# build FOLDER [TARGET...]
build() {
  local folder=$1 parallel
  shift
  parallel=$(compilers)
  say "building $folder${*:+: $*} ($parallel at once)"
  (cd "$root" && cmake --build "$folder" --parallel "$parallel" ${*:+--target "$@"})
}

# The CUDA toolkit's compiler where it usually lies, if it is not on PATH.
find_cuda() {
  command -v nvcc >/dev/null || [[ ! -x /usr/local/cuda/bin/nvcc ]] || PATH=$PATH:/usr/local/cuda/bin
}

# What Open MPI has to be told on a workstation, in a container or as root. What the user has set stays.
mpi_environment() {
  if ((EUID == 0)); then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
  # More ranks than cores: a rank that waits must let the others run.
  export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-1}
  # Containers mostly forbid process_vm_readv; MPI carries no more than control messages here.
  export OMPI_MCA_btl_vader_single_copy_mechanism=${OMPI_MCA_btl_vader_single_copy_mechanism:-none}
}

# How many GPUs a program started here may use.
gpu_count() { "$root/scripts/lib/gpu_count.sh"; }
