# The packages of Debian 12 and Ubuntu 24.04 that troupe needs, and how they are installed. To be sourced.

packages_for_building=(
  build-essential cmake ninja-build pkg-config
  libopenmpi-dev openmpi-bin                                      # MPI
  libboost-program-options-dev libfmt-dev libhwloc-dev libspdlog-dev nlohmann-json3-dev
  zlib1g-dev                                                      # checksums
  libopenblas-dev liblapacke-dev                                  # the CPU engine, with Gloo
)
packages_for_testing=(libgtest-dev libbenchmark-dev)
# What more libraries of the CPU engine are built with.
packages_for_libraries=(libgloo-dev libboost-context-dev libdnnl-dev libeigen3-dev)

# What troupe builds without, and what is missing then.
declare -A optional_packages=(
  [libgloo-dev]="no CPU engine; only a machine with the CUDA toolkit can build troupe without it"
  [libboost-context-dev]="no kernels of programs on the CPU engine"
  [libdnnl-dev]="no convolutions on the CPU engine"
  [libeigen3-dev]="no direct solvers of sparse systems on the CPU engine"
  [libdeflate-dev]="checksums of saved states take twice as long"
  [libfftw3-dev]="no Fourier transforms on the CPU engine; it is GPL, so it is loaded where it is installed"
  [patchelf]="no bundles"
  [python3-scipy]="nobody judges random calls of blas, solver, fft and rng"
  [clang-16]="the sanitizers are those of g++, which compiles for them twice as long"
  [libclang-rt-16-dev]="the sanitizers are those of g++, which compiles for them twice as long"
  [lld-16]="programs with sanitizers are linked by the slower linker of binutils"
  [libblas-test]="netlib's tests of BLAS do not run"
  [spin]="the model of the protocol is not checked"
  [libcaf-dev]="no comparison with CAF among the benchmarks"
  [libcereal-dev]="messages of actors by cereal are not tested"
  [slurmctld]="no tests under Slurm"
  [slurmd]="no tests under Slurm"
  [slurm-client]="no tests under Slurm"
  [munge]="no tests under Slurm"
  [libpmix-dev]="no tests under Slurm; its plugin for MPI opens libpmix.so, which is in this package"
  [iproute2]="no tests under Slurm nor over several hosts"
  [gnuplot-nox]="no plots in reports of scaling"
  [shellcheck]="no check of the job scripts"
  [doxygen]="no reference of the public headers"
)

is_installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# has_candidate PACKAGE: whether apt knows a version of it that can be installed.
has_candidate() {
  local line
  line=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep '^  Candidate:') && [[ $line != *"(none)" ]]
}

# as_root COMMAND...: runs it as root, with sudo where need be; without a terminal sudo must not ask for a password.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

can_be_root() { ((EUID == 0)) || { command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; }; }

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -q -y \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# install_packages PACKAGE...: installs what is missing of these and says so. Packages of optional_packages are left out
# with a warning where there are none.
install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    warn "this is neither Debian nor Ubuntu: taking it that what these packages hold is installed: $*"
    return 0
  fi
  local package missing=() wanted=()
  for package in "$@"; do is_installed "$package" || missing+=("$package"); done
  if ((${#missing[@]} == 0)); then
    say "packages: all there"
    return 0
  fi
  if ! can_be_root; then
    local required=()
    for package in "${missing[@]}"; do
      if [[ -v optional_packages[$package] ]]; then
        warn "$package is not installed: ${optional_packages[$package]}"
      else
        required+=("$package")
      fi
    done
    ((${#required[@]} == 0)) ||
      die "packages are missing and neither root nor sudo is to be had; as root: apt-get install ${required[*]}"
    return 0
  fi
  say "packages: updating the package lists (apt-get update)"
  apt_get update >/dev/null || warn "apt-get update failed: going on with the package lists that are there"
  for package in "${missing[@]}"; do
    if has_candidate "$package"; then
      wanted+=("$package")
    elif [[ -v optional_packages[$package] ]]; then
      warn "there is no package $package here: ${optional_packages[$package]}"
    else
      die "there is no package $package among those of $(apt_sources)"
    fi
  done
  ((${#wanted[@]} == 0)) && return 0
  say "packages: installing ${wanted[*]}"
  apt_get install --no-install-recommends "${wanted[@]}" >/dev/null || die "apt-get could not install ${wanted[*]}"
}

apt_sources() { (. /etc/os-release && echo "$PRETTY_NAME") 2>/dev/null || echo "this system"; }
