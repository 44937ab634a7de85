# shellcheck shell=bash
# Which shared libraries a program takes along to another machine. To be sourced after build.sh.

is_elf() { [[ $(head -c 4 "$1" | tail -c 3 | tr -d '\0') == ELF ]]; }

# Libraries of NVIDIA's.
is_of_cuda() {
  case $1 in
    libcuda*.so* | libcublas*.so* | libcusparse*.so* | libcusolver*.so* | libcufft*.so* | libcudnn*.so* | libcudss*.so* | libcutensor*.so* | libcurand*.so* | libnccl*.so* | libnv*.so*) return 0 ;;
  esac
  return 1
}

# Libraries of the target machine.
is_foreign() {
  is_of_cuda "$1" && return 0
  case $1 in
    ld-linux*.so* | libc.so* | libm.so* | libmvec.so* | libdl.so* | libpthread.so* | librt.so* | libresolv.so* | \
      libutil.so* | libanl.so* | libstdc++.so* | libgcc_s.so*) return 0 ;;
    libmpi*.so* | libopen-*.so* | libpmix.so* | libprrte.so*) return 0 ;;
  esac
  return 1
}

needed_by() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

# resolve FILE LIBRARY: where the dynamic linker finds what FILE needs.
resolve() { ldd "$1" | awk -v name="$2" '$1 == name && $2 == "=>" && $3 ~ /^\// { print $3; exit }'; }

# collect FILE LIBRARY-FOLDER: copies what FILE needs, and what that needs. A copy finds its own needs beside itself.
collect() {
  local file=$1 folder=$2 library path
  for library in $(needed_by "$file"); do
    is_foreign "$library" && continue
    [[ -e $folder/$library ]] && continue
    path=$(resolve "$file" "$library")
    [[ -n $path ]] || die "$file needs $library, which is not to be found"
    cp -L "$path" "$folder/$library"
    chmod 755 "$folder/$library"
    collect "$path" "$folder"
    patchelf --set-rpath "\$ORIGIN" "$folder/$library"
    echo "   $library"
  done
}
