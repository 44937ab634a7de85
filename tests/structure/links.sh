#!/usr/bin/env bash
# links.sh TREE: every link in TREE's README.md and docs/*.md leads to a file, and those with an anchor to a heading of it.
# Prints a line for each that does not; exit status 1 if there are any.
set -euo pipefail
tree=$1 failures=0
fail() { echo "${document#"$tree/"}: $*" && failures=$((failures + 1)); }
anchors() { sed -n 's/^#\+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'; }
for document in "$tree/README.md" "$tree"/docs/*.md; do
  while IFS= read -r link; do
    [[ $link != *://* ]] || continue
    target=${link%%#*} anchor=
    [[ $link != *'#'* ]] || anchor=${link#*#}
    file=$document
    [[ -z $target ]] || file=$(dirname "$document")/$target
    if [[ ! -e $file ]]; then
      fail "no such file: $link"
    elif [[ -n $anchor ]] && ! anchors "$file" | grep -qxF -e "$anchor"; then
      fail "no such heading: $link"
    fi
  done < <(awk '/^```/ { inside = !inside; next } !inside' "$document" | tr '\n' ' ' | sed 's/`[^`]*`//g' | grep -o '\]([^)]*)' | sed 's/^](//; s/)$//')
done
((failures == 0))
