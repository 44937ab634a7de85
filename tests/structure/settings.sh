#!/usr/bin/env bash
# settings.sh SOURCE-TREE PROGRAM: the table of docs/settings.md is what scripts/settings.sh writes, and classes that settings.def
# names are there.
set -euo pipefail
diff <(sed -n '/^| setting /,/^$/p' "$1/docs/settings.md" | sed '/^$/d') <("$1/scripts/settings.sh" "$2") ||
  { echo "the table of docs/settings.md is stale: scripts/settings.sh $2 prints it" && exit 1; }
rows=$(grep -c '^| `' "$1/docs/settings.md")
((rows > 40)) || { echo "only $rows settings" && exit 1; }
# Each row of the definitions names the class that acts on the setting.
readers=$(sed -n 's/^ *WORDS(.*, \([A-Za-z]*\))$/\1/p' "$1/src/common/core/settings.def")
(($(wc -w <<<"$readers") == $(grep -c '^SETTING(' "$1/src/common/core/settings.def"))) ||
  { echo "settings.def: a row names no class that acts on it" && exit 1; }
for reader in $(sort -u <<<"$readers"); do
  grep -rqE "(class|struct) $reader( final)? (\{|:)" "$1/src" "$1/include" ||
    { echo "settings.def: there is no class $reader" && exit 1; }
done
echo "$rows settings"
