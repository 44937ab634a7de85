#!/usr/bin/env bash
# elf.sh rank|device FILE...: checks what the files of one side need of the other side's libraries. Programs of the
# rank process and libtroupe need no CUDA library and no NCCL; the device host and its engines need no MPI.
set -euo pipefail
side=$1
shift
case $side in
  rank) forbidden='^lib(cuda|cudart|cublas|cublasLt|cusparse|curand|cufft|cusolver|cudnn|nccl|nvrtc|nvJitLink|nvidia)[.a-z_-]*\.so' ;;
  device) forbidden='^(libmpi|libopen-rte|libopen-pal|libpmix|libtroupe)[._a-z]*\.so' ;;
  *) echo "elf.sh: rank or device, not $side" && exit 2 ;;
esac
(($# > 0)) || { echo "elf.sh: no files" && exit 2; }
status=0
for file in "$@"; do
  dynamic=$(readelf -d "$file")
  needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
  [[ -n $needed ]] || { echo "$file: needs no library at all: is it dynamically linked?" && exit 2; }
  if found=$(grep -E "$forbidden" <<<"$needed"); then
    echo "$(basename "$file") needs" $found
    status=1
  else
    echo "$(basename "$file"):" $needed
  fi
done
exit $status
