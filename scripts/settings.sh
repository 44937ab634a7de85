#!/usr/bin/env bash
# Prints the table of docs/settings.md: the settings that all programs have, from the definitions that --help shows.
#
#   scripts/settings.sh PROGRAM
set -euo pipefail
[[ $# == 1 && -x $1 ]] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
help=$("$1" --help)

echo '| setting | default | |'
echo '|---|---|---|'
# An option is a line that begins with its name, and lines that go on with its help.
awk '
  function trimmed(text) { gsub(/^ +| +$/, "", text); return text }
  function row(  fallback, at) {
    if (name == "") return
    fallback = ""
    if (at = match(help, / \(default [^()]*\)$/)) {
      fallback = "`" substr(help, at + 10, length(help) - at - 10) "`"
      help = substr(help, 1, at - 1)
    }
    gsub(/\|/, "\\|", name)
    gsub(/\|/, "\\|", help)
    print "| `" name "` | " fallback " | " help " |"
  }
  /^Runtime options:/ { inside = 1; next }
  !inside { next }
  /^$/ { exit }
  !column { column = match($0, /[a-z|]  +[a-z]/) + RLENGTH - 1 }  # of the help, the same in all lines
  /^ *(-[a-z] \[ )?--/ { row(); name = trimmed(substr($0, 1, column - 1)); help = trimmed(substr($0, column)); next }
  { help = help (help == "" ? "" : " ") trimmed($0) }
  END { row() }' <<<"$help"
