# shellcheck shell=bash
# A bare tree: the files of a few installed packages in a folder of their own, as if nothing else were installed. To be
# sourced after build.sh. Nothing here wants a network.

# packages_with_needs PACKAGE...: these, the packages that are essential, and all that these depend on, of what is
# installed here.
packages_with_needs() {
  dpkg-query -W -f='${db:Status-Status}\t${Package}\t${binary:Package}\t${Architecture}\t${Essential}\t${Provides}\t${Pre-Depends},${Depends}\n' |
    awk -F '\t' -v native="$(dpkg --print-architecture)" -v asked="$*" '
      function name_in(text) { sub(/^ +/, "", text); sub(/[ :(].*/, "", text); return text }
      $1 == "installed" && ($4 == native || $4 == "all") {
        full_name[$2] = $3
        needs[$2] = $7
        if ($5 == "yes") wanted[++count] = $2
        n = split($6, provided, ",")
        for (i = 1; i <= n; i++) provider[name_in(provided[i])] = $2
      }
      END {
        n = split(asked, names, " ")
        for (i = 1; i <= n; i++) wanted[++count] = names[i]
        for (at = 1; at <= count; at++) {
          if (wanted[at] in taken || !(wanted[at] in full_name)) continue
          taken[wanted[at]]
          print full_name[wanted[at]]
          n = split(needs[wanted[at]], all, ",")
          for (i = 1; i <= n; i++) {
            m = split(all[i], alternatives, "|")
            for (j = 1; j <= m; j++) {  # the first alternative that is there
              name = name_in(alternatives[j])
              if (!(name in full_name) && name in provider) name = provider[name]
              if (name in full_name) { wanted[++count] = name; break }
            }
          }
        }
      }'
}

# copy_packages TREE PACKAGE...: their files that exist here, without documents. Images of containers lack some.
copy_packages() {
  local tree=$1 file
  shift
  for file in /bin /sbin /lib /lib32 /lib64 /libx32; do
    [[ ! -L $file ]] || { cp -a "$file" "$tree$file" && mkdir -p "$tree/$(readlink "$file")"; }
  done
  dpkg -L "$@" | grep '^/' | grep -vE '^/usr/share/(doc|doc-base|info|lintian|locale|man)/' | sort -u |
    while IFS= read -r file; do
      if [[ -L $file && -e $tree$file ]]; then continue; fi
      if [[ -f $file || -L $file ]]; then printf '%s\0' "${file#/}"; fi
    done | tar -C / --null --files-from=- -cf - | tar -C "$tree" --keep-directory-symlink -xf -
}

# link_alternatives TREE: the links in it that packages do not hold, such as /usr/bin/mpirun and awk.
link_alternatives() {
  local tree=$1 name value link chosen
  update-alternatives --get-selections | while read -r name _ value; do
    [[ -e $tree$value ]] || continue
    update-alternatives --query "$name" |
      awk '/^$/ { over = 1 } over { next } /^Name:/ { name = $2 } /^Link:/ { print name, $2 } /^ / { print $1, $2 }' |
      while read -r name link; do
        chosen=$(readlink "/etc/alternatives/$name") || continue
        [[ -e $tree$chosen ]] || continue
        mkdir -p "$tree/etc/alternatives" "$tree/$(dirname "$link")"
        ln -sf "$chosen" "$tree/etc/alternatives/$name"
        ln -sf "/etc/alternatives/$name" "$tree$link"
      done
  done
}

# make_bare_tree TREE PACKAGE...: what their installation would make of an empty folder, as far as programs need it.
make_bare_tree() {
  local tree=$1 file packages
  shift
  mapfile -t packages < <(packages_with_needs "$@")
  copy_packages "$tree" "${packages[@]}"
  link_alternatives "$tree"
  mkdir -p "$tree"/{dev,etc,opt,proc,root,run,sys,tmp,usr/local/lib,var/tmp}
  chmod 1777 "$tree"/{tmp,var/tmp}
  for file in passwd group; do cp "/usr/share/base-passwd/$file.master" "$tree/etc/$file"; done
  for file in hostname hosts nsswitch.conf resolv.conf; do
    [[ ! -e /etc/$file ]] || cp -L "/etc/$file" "$tree/etc/$file"
  done
  chroot "$tree" ldconfig || true  # where chroot is forbidden nothing runs in the tree
  echo "${#packages[@]} packages"
}

# where_is LIBRARY: its file on this machine, by the ways of the dynamic linker and of the CUDA toolkit.
where_is() {
  local folder
  while IFS= read -r folder; do
    [[ -n $folder && -e $folder/$1 ]] && echo "$folder/$1" && return
  done < <(tr ':' '\n' <<<"${LD_LIBRARY_PATH:-}" && ldconfig -p | awk -v name="$1" '$1 == name { sub("/[^/]*$", "", $NF); print $NF }' &&
    printf '%s\n' "${CUDA_HOME:-/usr/local/cuda}"/{lib64,lib} /usr/local/nvidia/{lib64,lib})
  return 1
}

# companions PATH: libraries that the one at PATH opens when it wants them.
companions() {
  local folder file
  folder=$(dirname "$1")
  case ${1##*/} in
    libcuda.so.*) file=("$folder"/libnvidia-{ptxjitcompiler,nvvm,gpucomp}.so.*) ;;
    libcudnn.so.*) file=("$folder"/libcudnn_*".so.${1##*.so.}") ;;
    libnvrtc.so.*) file=("$folder/libnvrtc-builtins.so.${1##*.so.}".*) ;;
    *) return 0 ;;
  esac
  for file in "${file[@]}"; do [[ ! -e $file ]] || echo "$file"; done
}

# needed_of_cuda FILE...: the libraries of NVIDIA's among those that files need.
needed_of_cuda() {
  local library
  ldd "$@" 2>/dev/null | awk '{ print $1 }' | sort -u |
    while IFS= read -r library; do if is_of_cuda "$library"; then echo "$library"; fi; done
}

# add_cuda_libraries TREE FILE...: copies of the libraries of NVIDIA's that the files need, that troupe opens, and that
# these need in turn; says how many, and which are not here. Which libraries are NVIDIA's, libraries.sh knows.
add_cuda_libraries() {
  local tree=$1 to=$1/usr/local/lib at path file major wanted more copied=0
  local -A absent=()
  shift
  mapfile -t wanted < <(needed_of_cuda "$@")
  major=$(printf '%s\n' "${wanted[@]}" | sed -n 's/^libcudart\.so\.//p')
  wanted+=(libcuda.so.1 libnvidia-ml.so.1 "libnvrtc.so.$major" "libnvJitLink.so.$major" libcurand.so.10)
  for ((at = 0; at < ${#wanted[@]}; ++at)); do  # which grows on the way
    [[ ! -e $to/${wanted[at]} ]] || continue
    path=$(where_is "${wanted[at]}") || { absent[${wanted[at]}]=1 && continue; }
    for file in "$path" $(companions "$path"); do
      cp -L "$file" "$to/"
      ((copied += 1))
    done
    mapfile -t more < <(needed_of_cuda "$path")
    wanted+=("${more[@]}")
  done
  chroot "$tree" ldconfig 2>/dev/null  # it warns of names that are no links
  echo "$copied, $(du -sh "$to" | cut -f 1)$( ((${#absent[@]} == 0)) || echo "; not here: ${!absent[*]}")"
}
