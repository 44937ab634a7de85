#!/usr/bin/env bash
# documents.sh SOURCE-TREE BUILD-TREE CXX: compiles every C++ block of README.md and docs/*.md, runs every program and
# every shell command in them. The programs run with two ranks on the CPU engine, against the build tree.
#
# For writers: each fenced block with a language has a verdict, an HTML comment on the line before its fence.
#   ```cpp
#   <!-- test: program as NAME ARGUMENTS -->      a whole program with main(): compiled and run; commands find it as ./NAME
#   <!-- test: program calls NAME ARGUMENTS -->   the same without main(): int NAME(Runtime&) is its body; an option --x Y in
#                                                 ARGUMENTS is made an integer option of the program
#   <!-- test: declarations -->                   stands outside of any function: compiled
#   <!-- test: fragment PARAMETERS -->            stands in a function, where `runtime`, `device`, `world`, and these
#                                                 parameters (C++: "int n, GpuRef<float> x") are in scope: compiled
# What a document declares in a block is known in its later ones.
#   <!-- test: not compiled: REASON -->
#   ```sh
#   <!-- test: run -->              in an empty folder with the source tree's scripts/, config/ and apps/, and the programs of the build tree,
#                                   which are on PATH and in build/demo/bin; and that has the
#                                   programs of the documents
#   <!-- test: not run: REASON -->  it is checked with bash -n all the same
#   ```cmake
#   <!-- test: consumer -->         all of its lines are in tests/structure/consumer/CMakeLists.txt
#   <!-- test: library example -->  all of its lines are in apps/examples/library/CMakeLists.txt
# Blocks without a language are pictures and output: they have no verdict.
set -euo pipefail
source_tree=$1 build_tree=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "documents test: $*" && failures=$((failures + 1)); }
mkdir "$work/sh" "$work/programs"
: >"$work/includes" && : >"$work/fragments"
blocks=0 fragments=0

# keep_cpp PLACE VERDICT FILE: puts a block of C++ where its verdict wants it.
keep_cpp() {
  local place=$1 verdict=$2 file=$3 line="#line $((${1##*:} + 1)) \"${1%:*}\""
  case $verdict in
    program*)
      local kind name arguments
      read -r _ kind name arguments <<<"$verdict"
      [[ $kind == as || $kind == calls ]] || fail "$place: neither 'program as' nor 'program calls': '$verdict'"
      {
        echo "$line" && cat "$file"
        if [[ $kind == calls ]]; then
          local options="" word
          for word in $arguments; do
            [[ $word != --* ]] || options+="{\"${word#--}\", OptionType::integer, \"1\", \"N\", \"a number\", {}, \"0\"},"
          done
          echo "int main(int argc, char** argv) {"
          echo "return troupe::run_program(argc, argv, {\"$name\", \"A program of a document.\", {$options}}, $name); }"
        fi
      } >"$work/programs/$name.cpp"
      echo "$place" >"$work/programs/$name.place"
      echo "$arguments" >"$work/programs/$name.arguments"
      ;;
    declarations | fragment*)
      fragments=$((fragments + 1))
      grep '^#include' "$file" >>"$work/includes" || true
      {
        echo "namespace $(basename "${place%.md:*}") {"
        [[ $verdict == declarations ]] ||
          echo "void block_${fragments}(Runtime& runtime, Device& device, World& world${verdict#fragment}) {" |
          sed 's/World& world \(..*\)) {/World\& world, \1) {/'
        echo "$line" && sed 's/^#include.*//; s/^using namespace troupe;$//' "$file"
        [[ $verdict == declarations ]] || echo "}"
        echo "}"
      } >>"$work/fragments"
      ;;
    "not compiled: "?*) ;;
    *) fail "$place: C++ without a verdict, or with an unknown one: '$verdict'" ;;
  esac
}

keep_block() {
  local place=$1 language=$2 verdict=$3 file=$4
  blocks=$((blocks + 1))
  case $language in
    cpp) keep_cpp "$place" "$verdict" "$file" ;;
    sh)
      bash -n "$file" || fail "$place: not the shell's language"
      case $verdict in
        run) cp "$file" "$work/sh/$(printf '%02d' "$blocks")" && echo "$place" >"$work/sh/$(printf '%02d' "$blocks").place" ;;
        "not run: "?*) ;;
        *) fail "$place: commands without a verdict, or with an unknown one: '$verdict'" ;;
      esac
      ;;
    cmake)
      local known=$source_tree/tests/structure/consumer/CMakeLists.txt
      [[ $verdict != "library example" ]] || known=$source_tree/apps/examples/library/CMakeLists.txt
      [[ $verdict == consumer || $verdict == "library example" ]] ||
        fail "$place: CMake without a verdict, or with an unknown one: '$verdict'"
      while IFS= read -r line; do
        grep -qxF -e "$line" "$known" || fail "$place: not in $known: $line"
      done <"$file"
      ;;
    *) fail "$place: a block in an unknown language, '$language'" ;;
  esac
}

for document in "$source_tree/README.md" "$source_tree"/docs/*.md; do
  number=0 inside="" verdict="" last=""
  while IFS= read -r line; do
    number=$((number + 1))
    if [[ $line == '```'* ]]; then
      if [[ -z $inside ]]; then
        inside=${line#'```'} start=$number
        [[ -n $inside ]] || inside=text
        verdict=""
        [[ $last != '<!-- test: '*' -->' ]] || verdict=${last#'<!-- test: '} verdict=${verdict%' -->'}
        : >"$work/block"
      else
        [[ $inside == text ]] || keep_block "${document#"$source_tree/"}:$start" "$inside" "$verdict" "$work/block"
        inside=""
      fi
    elif [[ -n $inside ]]; then
      printf '%s\n' "$line" >>"$work/block"
    fi
    last=$line
  done <"$document"
  [[ -z $inside ]] || fail "${document#"$source_tree/"}: a block does not end"
done
((fragments > 0)) || fail "no fragment was found"

broken=$("$(dirname "$0")/links.sh" "$source_tree") || fail "$broken"
for document in "$source_tree"/docs/*.md; do
  grep -qF "(docs/$(basename "$document")" "$source_tree/README.md" ||
    fail "the README does not lead to ${document#"$source_tree/"}"
done

cd "$source_tree"  # messages of the compiler name the documents
flags=(-std=c++20 -O0 -Wall -Wno-unused -I "$source_tree/include" -I "$source_tree/tests/structure/documents")
{
  cat "$work/includes" && echo "#include \"prelude.hpp\"" && cat "$work/fragments"
} >"$work/fragments.cpp"
"$cxx" "${flags[@]}" -fsyntax-only "$work/fragments.cpp" || fail "a fragment does not compile"
((failures == 0)) || { echo "documents test: $failures failures" && exit 1; }
[[ -n $build_tree ]] || exit 0

mkdir -p "$work/run/build/demo"
ln -s "$build_tree/bin" "$work/run/build/demo/bin"
ln -s "$source_tree/scripts" "$source_tree/config" "$source_tree/apps" "$work/run/"
export PATH=$build_tree/bin:$PATH TROUPE_ENGINE=cpu
unset TROUPE_TEST_BACKEND
for source in "$work"/programs/*.cpp; do
  program=${source%.cpp} place=$(cat "${source%.cpp}.place")
  "$cxx" "${flags[@]}" "$source" -o "$program" -L "$build_tree/lib" -ltroupe -Wl,-rpath,"$build_tree/lib" ||
    { fail "$place: it does not compile" && continue; }
  cp "$program" "$work/run/"
  # shellcheck disable=SC2046
  (cd "$work/run" && timeout 120 mpirun -n 2 --bind-to none "$program" $(cat "$program.arguments") </dev/null) ||
    fail "$place: the program ended with status $?"
done
for commands in "$work"/sh/??; do
  place=$(cat "$commands.place")
  (cd "$work/run" && timeout 120 bash -euo pipefail "$commands" </dev/null) >"$work/output" 2>&1 ||
    { fail "$place: the commands ended with status $?" && tail -n 20 "$work/output"; }
done
((failures == 0)) || { echo "documents test: $failures failures" && exit 1; }
echo "documents test: $blocks blocks, passed"
