#!/usr/bin/env bash
# layering.sh SOURCE-TREE: checks every include of the tree against the layers of the architecture. Prints each
# violation as FILE:LINE: what is wrong, and exits with 1 if there is any.
#
#   include/troupe/            the standard library and <troupe/...>; cereal in actor/cereal.hpp only
#   src/common/                no rank/, no device_host/, no library's header
#   src/rank/                  no device_host/; MPI in net/mpi/ only. Below: device/, net/; on them store/, protocol/ (pure), token/,
#                              post/, none of which knows another; on these world/, and run/ on top
#   src/plugin/                what libraries outside the tree include: common/wire/checker.hpp and the engines' library.hpp;
#                              of it src/device_host/engine/outside.cpp includes module.hpp, and nothing else anything
#   src/device_host/           no rank/; CUDA in engine/cuda/ only; the engines know nothing of each other, the rest nothing
#                              of either. own_operations and sequences.cpp alone include a library's header: nothing else names an
#                              operation
#   src/lib/NAME/              no rank/, no other library. A file is for the CPU engine if its name is, or ends with _,
#                              cpu.cpp or cpu.hpp; likewise cuda; *.cu and *.cuh are kernels. CUDA in cuda files and kernels
#                              only, NCCL and Gloo in those of lib/collective/ only. Of device_host/ cpu files include
#                              engine/cpu/library.hpp, cuda files engine/cuda/library.hpp and stream_memory.hpp, those of
#                              lib/collective/ engine/collective_half.hpp and engine/cuda/peer_memory.hpp beside it, kernels
#                              engine/cuda/launch.hpp and launch.cuh, everything else nothing; but code that looks at
#                              products may include engine/product_*.hpp, cpu/await.hpp, cpu/spoil.hpp and cuda/stored.cuh.
#                              Neither tower includes anything of it (tests, samples.cpp, catalogue.cpp and catalogue.hpp are free)
#   src/lib/distributed/       the standard library and <troupe/...>: it stands on public calls alone
#   src/keeper/                src/common/ and MPI
#   src/simulation/            rank/protocol, simulated; nothing else in src/ includes it
#   anywhere                   no class is the friend of another
#   apps/troupe-perf/          peer_mpi.cpp and peer_nccl.cpp, modules of what troupe is compared with, may include MPI or CUDA
#   apps/examples/library/     a project of its own, whose cuda half may include CUDA
#   apps/NAME/, tests/torture/  <troupe/...>, simulation/, its own headers and those of apps/common/, and reference/ and catalogue/
#                              of the tests: arithmetic on the host, and calls that are drawn
set -euo pipefail
tree=$(cd "$1" && pwd)
cd "$tree"

mpi='<(mpi|mpi-ext)\.h>'
gpu='[<"](cuda|cublas|cusparse|curand|cufft|cusolver|cudnn|cudss|cutensor|nccl|nvrtc|nvml|nvJitLink|cupti|nvtx|nvToolsExt|thrust/|cub/|cooperative_groups|library_types\.h|driver_types\.h|device_launch)'
# A library's files, in its folder or in those of its families, for one engine.
cpu_half='([a-z_0-9/]*[/_])?cpu\.[ch]pp'
cuda_code='([a-z_0-9/]*[/_])?cuda\.[ch]pp'
cuda_kernels='[a-z_0-9/]+\.cuh?'
cuda_half="($cuda_code|$cuda_kernels)"
violations=0

# "FILE:LINE:<header>" or "FILE:LINE:"header"" of every include of the tree, looked for once
all=$(grep -rHnE '^[[:space:]]*#[[:space:]]*include' --include='*.[ch]' --include='*.[ch]pp' --include='*.cu' \
  --include='*.cuh' --include='*.in' --exclude='*_test.cpp' --exclude=test.cpp --exclude=samples.cpp --exclude=catalogue.cpp --exclude=catalogue.hpp include src apps tests/torture |
  sed -E 's/^([^:]*:[0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*([<"][^>"]*[>"]).*/\1:\2/')

# includes FOLDER: those below it
includes() {
  [[ -d $1 ]] || { echo "layering: there is no folder $1 in $tree" >&2 && exit 2; }
  grep "^$1/" <<<"$all"
}

# forbid FOLDER PATTERN REASON [EXCEPT-FOLDER]: no include below FOLDER may match
forbid() {
  local found
  found=$(includes "$1" | grep -E "^[^:]*:[0-9]+:.*($2)" || true)
  [[ -z ${4:-} ]] || found=$(grep -vE "^($4)" <<<"$found" || true)
  report "$found" "$3"
}

# demand FOLDER PATTERN REASON: every include below FOLDER must match
demand() { report "$(includes "$1" | grep -vE "^[^:]*:[0-9]+:($2)" || true)" "$3"; }

report() {
  local line
  while IFS= read -r line; do
    [[ -n $line ]] || continue
    echo "${line%%:[<\"]*}: ${line#*:*:}: $2"
    violations=$((violations + 1))
  done <<<"$1"
}

demand include '<troupe/|<[a-z_0-9]+>|<cereal/' "public headers include the standard library and <troupe/...> only"
forbid include '<cereal/' "cereal is for who asks for it" "include/troupe/actor/cereal\.hpp:"

forbid src "$mpi" "MPI belongs in src/rank/net/mpi and in src/keeper" "src/rank/net/mpi/|src/keeper/"
forbid apps "$mpi" "applications do not see MPI" 'apps/troupe-perf/peer_mpi\.cpp:'
forbid src "$gpu" "CUDA belongs in src/device_host/engine/cuda and in the cuda halves of libraries" \
  "src/device_host/engine/cuda/|src/lib/$cuda_half:"
forbid src '[<"]nccl' "NCCL belongs in the collective library's half" "src/lib/collective/$cuda_half:"
forbid src '<gloo/' "Gloo belongs in the collective library's half" "src/lib/collective/$cpu_half:"
forbid apps "$gpu" "applications do not see CUDA" "apps/troupe-perf/peer_nccl\.cpp:|apps/examples/library/$cuda_half:"

demand src '<|"(common|rank|device_host|keeper|lib|plugin|simulation)/' "includes of our own are rooted at src"
demand src/plugin '<troupe/|<[a-z_]+>|"plugin/module\.hpp"|"common/wire/checker\.hpp"|"device_host/engine/(cpu|cuda)/library\.hpp"' \
  "libraries outside the tree see what those inside see"
forbid src '"plugin/' "what is for libraries outside the tree is for them alone" "src/plugin/|src/device_host/engine/outside\.cpp:"
forbid src '"lib/' "a library is linked or loaded, not included" "src/lib/"
forbid src/lib '"rank/' "a library does not include the rank process"
forbid src/lib '"device_host/' "a library's half includes its engine's library.hpp, its definition nothing of the device host" \
  "src/lib/($cpu_half:[0-9]+:\"device_host/engine/cpu/library\.hpp\"|$cuda_code:[0-9]+:\"device_host/engine/cuda/(library|stream_memory)\.hpp\"|$cuda_kernels:[0-9]+:\"device_host/engine/cuda/launch\.(hpp|cuh)\"|collective/($cpu_half|$cuda_code):[0-9]+:\"device_host/engine/(collective_half|cuda/peer_memory)\.hpp\"|(blas|fft|sparse)/[a-z_0-9/]+\.(hpp|cpp|cu):[0-9]+:\"device_host/engine/(product_(checks|sums)\.hpp|cpu/(await|spoil)\.hpp|cuda/stored\.cuh)\")"
demand src/lib/distributed '<troupe/|<[a-z_0-9]+>' "what many ranks compute together stands on public calls alone"
while IFS=: read -r file line header; do
  library=${file#src/lib/}
  [[ $header == "\"lib/${library%%/*}/"* ]] ||
    report "$file:$line:$header" "a library does not include another one"
done < <(includes src/lib | grep ':"lib/' || true)
forbid src/common '"(rank|device_host)/' "common stands below both processes"
operations='<troupe/lib/(operation|operation_info|outside|overlap|submit|fault_kind)\.hpp>'
for tower in common device_host; do
  report "$(includes src/$tower | grep ':<troupe/lib/' | grep -vE "^[^:]*:[0-9]+:$operations" |
    grep -vE '^src/device_host/(intake/own_operations|sequences/sequences)\.[ch]pp:' || true)" "only libraries, and who submits them, know operations"
done
demand src/keeper '<|"(common|keeper)/' "a keeper stands on common/ and MPI"
forbid src '"keeper/' "what others know of keepers is in src/common/keeper" "src/keeper/"
forbid src '"simulation/' "the simulation stands above what it simulates" "src/simulation/"
forbid src/simulation '"device_host/' "what is simulated is the ranks' protocol"
forbid src/rank '"device_host/' "the rank process does not include the device host"
forbid src/rank/protocol '"rank/(net|store|token|post|world|run)/|"rank/device/[^"]*"' "the protocol knows no device, no MPI and no files" \
  'src/rank/protocol/follower\.hpp:[0-9]+:"rank/device/device_(events|order)\.hpp"'
for part in device net; do
  forbid src/rank/$part '"rank/(store|protocol|token|post|world|run)/' "buffers, commands and MPI stand below the world"
done
forbid src/rank/store '"rank/(protocol|token|post|world|run)/' "saved states stand below the world"
forbid src/rank/token '"rank/(store|protocol|post|world|run)/' "tokens stand below the world"
forbid src/rank/post '"rank/(device|net|store|protocol|token|world|run)/' "messages of actors know neither devices nor epochs"
forbid src/rank/world '"rank/run/' "runs stand above the world"
forbid src/device_host '"rank/' "the device host does not include the rank process"
forbid src/device_host/engine/cpu '"device_host/engine/cuda/' "the engines know nothing of each other"
forbid src/device_host/engine/cuda '"device_host/engine/cpu/' "the engines know nothing of each other"
forbid src/device_host '"device_host/engine/(cpu|cuda)/' "the engines are linked, not included" "src/device_host/engine/(cpu|cuda)/"

for folder in apps tests/torture; do
  demand $folder '<|"[^/"]+"|"(simulation|reference|catalogue)/' "applications include <troupe/...>, simulation/, reference/, catalogue/ and headers of their own folder and of apps/common"
  while IFS=: read -r file line header; do
    header=${header//\"/}
    [[ -e ${file%/*}/$header || -e apps/common/$header ]] || report "$file:$line:\"$header\"" "an application's header lies in its own folder or in apps/common"
  done < <(includes $folder | grep -E ':"[^/"]+"$' || true)
done
forbid tests/torture "$mpi|$gpu" "the torture sees neither MPI nor CUDA" 'tests/torture/functions_cuda\.cu:'

while IFS=: read -r file line text; do
  report "$file:$line:<$text>" "a class keeps to the public part of others"
done < <(grep -rnE '^[[:space:]]*friend (class|struct) ' include src apps tests/torture || true)

if ((violations > 0)); then
  echo "layering: $violations violation(s)"
  exit 1
fi
echo "layering: $({ includes include; includes src; includes apps; includes tests/torture; } | wc -l) includes checked"
