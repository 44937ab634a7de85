#!/usr/bin/env bash
# Runs a bundle of scripts/bundle.sh on a bare system, which has none of what troupe is built with.
#
#   scripts/bundle-check.sh [--engine cpu|cuda] BUNDLE.tar.gz
#
# It wants root on a Debian or Ubuntu machine with Open MPI (openmpi-bin), and no network. The bare system is a folder with
# the files of the packages here that are essential, of Open MPI, and of all that these depend on. The bundle is unpacked
# there and runs by chroot: troupe-cg and troupe-torture with faults, troupe-perf, and troupe-heat, which has kernels of its
# own and so wants a C++ compiler with the cpu engine. With --engine cuda (default: cpu) the folder also gets copies of
# NVIDIA's libraries, from LD_LIBRARY_PATH, the dynamic linker's folders, CUDA_HOME and /usr/local, and the programs run on
# this machine's GPUs, up to two of them.
#
# Each command there has mounts of its own (/dev, /proc and /sys), which end with it. In a container that forbids mounts the
# bundle runs outside of the folder instead, and what is loaded must be the bundle's, the folder's or NVIDIA's.
#
# A line for each thing tried. Exit status: 0 if all went well, 1 if not, 2 for bad usage, 77 if this machine cannot do it.
set -euo pipefail
source "$(dirname "$0")/lib/build.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/libraries.sh"
source "$root/scripts/lib/bare_tree.sh"
export LC_ALL=C

engine=cpu bundle=''
while (($#)); do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --engine)
      [[ ${2:-} == cpu || ${2:-} == cuda ]] || { usage >&2 && exit 2; }
      engine=$2
      shift
      ;;
    -*) usage >&2 && exit 2 ;;
    *)
      [[ -z $bundle ]] || { usage >&2 && exit 2; }
      bundle=$1
      ;;
  esac
  shift
done
[[ -f $bundle ]] || { usage >&2 && exit 2; }
bundle=$(realpath "$bundle")

cannot() { echo "skipped: $*" && exit 77; }
((EUID == 0)) || cannot "only root can make a bare system"
command -v dpkg-query >/dev/null || cannot "this is neither Debian nor Ubuntu"
is_installed openmpi-bin || cannot "openmpi-bin is not installed"
ranks=2
if [[ $engine == cuda ]]; then
  ranks=$(gpu_count)
  ((ranks > 0)) || cannot "there is no GPU here"
  ((ranks <= 2)) || ranks=2
fi

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
tree=$work/tree log=$work/log
mkdir "$tree" "$work/loaded"
cd "$work"
failures=0
namespace=()           # the command that gives another one mounts of its own; empty: the bundle runs outside of the tree
bundle_at=/opt/bundle  # where the bundle's programs find themselves
reports=/tmp           # where they write
compared=1             # outside of the tree: whether what is loaded is compared with it

ok() { printf 'ok       %s: %s\n' "$1" "$2"; }
failed() {
  ((failures += 1))
  printf 'FAILED   %s: %s\n' "$1" "$2"
}

# inside COMMAND...: runs it on the bare system, with hardly anything of this environment.
inside() {
  local settings=("HOME=$reports" "PATH=$bundle_at/bin:/usr/sbin:/usr/bin:/sbin:/bin" "${passed_on[@]}")
  if ((${#namespace[@]})); then
    # shellcheck disable=SC2016  # for the shell that is started
    "${namespace[@]}" bash -c 'set -e; tree=$1; shift
      for folder in dev proc sys; do mount --rbind "/$folder" "$tree/$folder"; done
      exec chroot "$tree" /usr/bin/env -i "$@"' inside "$tree" "${settings[@]}" "$@"
  else
    [[ $engine == cpu ]] || settings+=("LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}")
    # The dynamic linker writes what each process loads.
    ((compared == 0)) || settings+=("LD_DEBUG=files" "LD_DEBUG_OUTPUT=$work/loaded/by")
    env -i "${settings[@]}" "$@"
  fi
}

# Which way a command gets there. Without /proc no program finds its own libraries, so chroot alone does not do.
find_way() {
  local why
  namespace=(unshare --mount)
  why=$(inside true 2>&1) && ok "way there" "chroot, mounts in a namespace" && return
  namespace=(unshare --map-root-user --mount)
  inside true 2>/dev/null && ok "way there" "chroot, mounts in a namespace of users" && return
  namespace=()
  bundle_at=$tree/opt/bundle reports=$tree/tmp
  ok "way there" "none (${why%%$'\n'*}): the bundle runs outside, and what it loads is compared"
}

# attempt NAME STATUS WORDS COMMAND...: the command must end so, within five minutes, and print a line with these words,
# which are a regular expression.
attempt() {
  local name=$1 expected=$2 words=$3 status=0 line
  shift 3
  inside timeout --kill-after=5 300 "$@" >"$log" 2>&1 </dev/null || status=$?
  line=$(grep -m 1 -E "$words" "$log") || true
  if ((status == expected)) && [[ -n $line ]]; then
    ok "$name" "$line"
  else
    failed "$name" "status $status instead of $expected, or no line has \"$words\""
    grep -vE '^(-+|)$' "$log" | tail -n 20 | sed 's/^/   /'
  fi
}

# check_libraries: all that the files of the bundle need is in it or on the bare system, apart from NVIDIA's.
check_libraries() {
  local file library where missing=() left_out=()
  # shellcheck disable=SC2016  # for the shell that is started
  inside bash -c 'for file in "$1"/{bin,lib,libexec/troupe}/*; do
      [[ ! -f $file ]] || ldd "$file" 2>&1 | sed "s|^|${file##*/}|"
    done' ldd "$bundle_at" >"$log"
  while read -r file library where; do
    [[ $where == *"not found"* ]] || continue
    if is_of_cuda "$library"; then left_out+=("$library"); else missing+=("$file: $library $where"); fi
  done <"$log"
  if ((${#missing[@]})); then
    failed libraries "$(printf '%s\n' "${missing[@]}" | head -n 5 | paste -sd ';')"
  elif ! grep -q libtroupe.so "$log"; then
    failed libraries "ldd says nothing"
  else
    ok libraries "$(wc -l <"$log") are found$( ((${#left_out[@]} == 0)) ||
      echo "; of NVIDIA's not $(printf '%s\n' "${left_out[@]}" | sort -u | paste -sd ' ')")"
  fi
}

# check_loaded: outside of the tree, what was loaded is of the bundle, the tree or NVIDIA.
check_loaded() {
  local file others=() count=0
  while read -r file; do
    ((count += 1))
    [[ $file == "$bundle_at"/* || -e $tree$file ]] || is_of_cuda "${file##*/}" || others+=("$file")
  done < <(cat "$work"/loaded/by.* 2>/dev/null | sed -n 's|.*calling init: \(/.*\)|\1|p' | sort -u)
  if ((count == 0)); then
    failed "libraries loaded" "the dynamic linker does not say which"
  elif ((${#others[@]})); then
    failed "libraries loaded" "not of the bare system: ${others[*]}"
  else
    ok "libraries loaded" "$count, of the bundle or the bare system$([[ $engine == cpu ]] || echo ", or NVIDIA's")"
  fi
}

mpi_environment
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}  # as in gpu-check.sh
mapfile -t passed_on < <(env | grep -E '^(OMPI_|PMIX_|NCCL_|CUDA_VISIBLE_DEVICES=)')

holds=$(make_bare_tree "$tree" openmpi-bin libstdc++6)
strange=$(find "$tree" '(' -name 'libboost*' -o -name 'libspdlog*' -o -name 'libfmt*' -o -name cc1plus -o -name 'g++*' -o -name 'clang*' -o -name 'c++*' ')')
if [[ -z $strange ]]; then
  ok "bare system" "$holds of $(apt_sources), $(du -sh "$tree" | cut -f 1), no compiler, Boost, spdlog or fmt"
else
  failed "bare system" "it has $(head -n 3 <<<"$strange" | paste -sd ' ')"
fi
find_way

mkdir "$tree/opt/bundle"
cp "$bundle" "$tree/opt/bundle.tar"
inside tar -C "$bundle_at" --strip-components=1 -xf "$bundle_at.tar"
[[ -e $tree/opt/bundle/libexec/troupe/troupe-engine-$engine.so ]] || cannot "the bundle has no $engine engine"
ok bundle "unpacked, $(du -sh "$tree/opt/bundle" | cut -f 1)"
if [[ $engine == cuda ]] && ((${#namespace[@]})); then
  ok "NVIDIA's libraries" "$(add_cuda_libraries "$tree" "$tree"/opt/bundle/libexec/troupe/*.so)"
fi
((${#namespace[@]} == 0)) || check_libraries

job=(mpirun -n "$ranks" --oversubscribe --bind-to none)
if [[ $engine == cpu ]]; then fault='kill'; else fault='illegal-address'; fi
attempt troupe-info 0 '^Usage: ' troupe-info --help
attempt "troupe-cg with a fault ($fault)" 0 '^Recoveries: 1 ' \
  "${job[@]}" troupe-cg --engine "$engine" --stencil 16 --fault "$fault@5:$((ranks - 1))" --json "$reports/cg.json"
verdict=$(inside cat "$reports/cg.json" 2>&1) || true
if [[ $verdict == *'"converged": true'* && $verdict == *"\"engine\": \"$engine\""* && $verdict == *'"total_ms"'* ]]; then
  ok "troupe-cg's report" "engine $engine, converged, one recovery"
else
  failed "troupe-cg's report" "$(head -n 3 <<<"$verdict" | paste -sd ' ')"
fi
attempt troupe-perf 0 'Out of bounds values : 0 OK' "${job[@]}" troupe-perf --engine "$engine" -b 1K -e 1M -f 16 -n 5
compared=0  # outside, from here on: compilers and libraries that are opened where they are installed
attempt "troupe-torture with faults" 0 ' [1-9][0-9]* recover.*nothing wrong' \
  "${job[@]}" troupe-torture --engine "$engine" --operations 200 --faults many
heat=(troupe-heat --engine "$engine" --points 16 --steps 20 --commit-every 20)
if [[ ! -e $tree/opt/bundle/libexec/troupe/troupe-kernel-$engine.so ]]; then
  echo "skipped  kernels of a program's own: the bundle was built without them"
elif [[ $engine == cuda ]]; then
  attempt "kernels of a program's own" 0 '^Solution after step .*: right' "${job[@]}" "${heat[@]}"
elif ((${#namespace[@]})); then
  attempt "kernels without a compiler" 2 'there is no compiler c\+\+ for the cpu engine' mpirun -n 1 "${heat[@]}"
else
  echo "skipped  kernels without a compiler: outside of the bare system there may be one"
fi
((${#namespace[@]})) || check_loaded
((failures == 0))
