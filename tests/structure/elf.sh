#!/usr/bin/env bash
# elf.sh rank|device FILE...: checks what the files of one side need of the other side's libraries. Programs of the
# rank process and libtroupe need no CUDA library, no NCCL and no Gloo; the device host, its engines and their libraries
# need no MPI, and of CUDA, NCCL and Gloo no more than is their own.
set -euo pipefail
side=$1
shift
libraries='^lib(cuda|cudart|cublas|cublasLt|cusparse|curand|cufft|cusolver|cudnn|cudss|cutensor|nccl|nvrtc|nvJitLink|nvidia|gloo)[.a-z_-]*\.so'
case $side in
  rank) forbidden=$libraries ;;
  device) forbidden='^(libmpi|libopen-rte|libopen-pal|libpmix|libtroupe)[._a-z]*\.so' ;;
  *) echo "elf.sh: rank or device, not $side" && exit 2 ;;
esac
(($# > 0)) || { echo "elf.sh: no files" && exit 2; }

# own FILE: which of these it may need
own() {
  case $(basename "$1") in
    troupe-collective-cuda.so) echo '^lib(cudart|nccl)\.so' ;;
    troupe-blas-cuda.so) echo '^lib(cudart|cublas|cublasLt)\.so' ;;
    troupe-solver-cuda.so) echo '^lib(cudart|cusolver|cublas|cublasLt|cusparse|nvJitLink)\.so' ;;
    troupe-direct-cuda.so) echo '^lib(cudart|cudss)\.so' ;;
    troupe-dnn-cuda.so) echo '^lib(cudart|cudnn)\.so' ;;
    troupe-fft-cuda.so) echo '^lib(cudart|cufft)\.so' ;;
    troupe-sparse-cuda.so) echo '^lib(cudart|cusparse|nvJitLink)\.so' ;;
    troupe-tensor-cuda.so) echo '^lib(cudart|cutensor)\.so' ;;
    troupe-*-cuda.so) echo '^libcudart\.so' ;;
    troupe-collective-cpu.so) echo '^libgloo\.so' ;;
    *) echo '^$' ;;
  esac
}

status=0
for file in "$@"; do
  dynamic=$(readelf -d "$file")
  needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
  [[ -n $needed ]] || { echo "$file: needs no library at all: is it dynamically linked?" && exit 2; }
  if found=$(grep -E "$forbidden" <<<"$needed" || grep -E "$libraries" <<<"$needed" | grep -vE "$(own "$file")"); then
    echo "$(basename "$file") needs" $found
    status=1
  else
    echo "$(basename "$file"):" $needed
  fi
done
exit $status
