#!/usr/bin/env bash
# classes_selftest.sh SOURCE-FOLDER: classes.py finds what it is for, in a tree that has it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/src/part" "$work/include" "$work/tests"
cp "$here/classes.py" "$work/tests/"

# functions N: so many declarations, of all kinds that there are
functions() {
  local i
  for ((i = 0; i < $1; ++i)); do
    case $((i % 4)) in
      0) echo "  [[nodiscard]] virtual int f$i(std::function<void(int)> g = {}) const noexcept;" ;;
      1) echo "  template <class T> T f$i(T value) { return {value}; }" ;;
      2) echo "  static Result<std::vector<int>> f$i(int a, int b);" ;;
      3) echo "  bool operator<(const Other$i& other) const;" ;;
    esac
  done
}
# a_class N: of so many functions, with what does not count
a_class() {
  echo "class Subject final : public Base<int> {"
  echo " public:"
  echo "  Subject(int a) : a_(a) {}  // int not_this_one();"
  echo "  ~Subject();"
  echo "  Subject& operator=(const Subject&) = delete;"
  functions "$1"
  echo " private:"
  echo "  struct Nested { int not_here(); };"
  echo "  std::function<void(int)> member_;"
  echo "  int a_ = f(1);"
  echo "};"
}
# finds WHAT: the script complains of it; finds nothing: it is content
finds() {
  local said status=0
  said=$(python3 "$work/tests/classes.py" "$work") || status=$?
  if [[ $1 == nothing ]]; then
    ((status == 0)) || { echo "it complains: $said" && exit 1; }
  else
    [[ $status == 1 && $said == *"$1"* ]] || { echo "status $status, not of '$1': $said" && exit 1; }
  fi
}

a_class 30 >"$work/src/part/subject.hpp"
finds nothing
a_class 31 >"$work/src/part/subject.hpp"
finds "Subject: 31 functions"
a_class 30 >"$work/src/part/subject.hpp"
echo "int Subject::f1() { return 1; }" >"$work/src/part/subject.cpp"
finds nothing
echo "int Subject::f2() { return 2; }" >"$work/src/part/more.cpp"
finds "Subject: defined in several files"
rm "$work"/src/part/*.cpp

mkdir -p "$work/src/rank/protocol"
cat >"$work/src/rank/protocol/message.hpp" <<'HPP'
namespace from_rank {
struct Said {
  std::int32_t rank = 0;
  std::vector<Pair<int, int>> pairs{};  ///< of other.idle
};
}
using Message = std::variant<from_rank::Said>;
HPP
echo "void hear(const Said& said) { use(said.pairs.size()); }" >"$work/src/part/hear.cpp"
finds nothing
echo "void say() { send(Said{.pairs = {}}); other.pairs = {}; }" >"$work/src/part/hear.cpp"
finds "Said::pairs: nobody"
