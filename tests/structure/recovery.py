#!/usr/bin/env python3
"""Compares what names the phases of a recovery with include/troupe/recovery.def.

    recovery.py SOURCE-FOLDER

Fails on a list of three or more phases or times in a document or a comment of a public header that is neither all
phases, nor all times, nor "detect" and all phases; on a table of phases in a document (a heading row `| phase |`) with
other rows; and on such a list anywhere in the code, which should take it from recovery.def.
"""
import pathlib
import re
import sys

FOLDERS_OF_CODE = ("include", "src", "apps", "tests")


def rows(table, kind):
    return re.findall(rf"^TROUPE_RECOVERY_{kind}\((\w+)", table, flags=re.M)


def lists_in(text, names):
    """Every list of three or more of the names, with the number of its line."""
    name = r'[`"]?\b(?:' + "|".join(names) + r')(?:_ms)?\b[`"]?'
    between = r"(?:,\s*(?:///\s*)?|,?\s+and\s+)"
    for found in re.finditer(f"{name}(?:{between}{name}){{2,}}", text):
        listed = [re.sub("_ms$", "", word) for word in re.findall(r"\w+", found.group()) if word != "and"]
        yield text.count("\n", 0, found.start()) + 1, listed


def tables_in(text):
    """The first column of every table whose heading is `phase`, with the number of its line."""
    for found in re.finditer(r"^\| phase \|.*\n\|[-|]+\n((?:\|.*\n)*)", text, flags=re.M):
        yield text.count("\n", 0, found.start()) + 1, re.findall(r"^\| (\w+) \|", found.group(1), flags=re.M)


def main():
    root = pathlib.Path(sys.argv[1])
    table = (root / "include/troupe/recovery.def").read_text()
    phases, times = rows(table, "PHASE"), rows(table, "TIME")
    right = (phases, times, ["detect"] + phases)
    names = sorted(set(phases + times))
    wrong, seen = [], 0
    documents = [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("include/troupe/**/*.hpp"))]
    for path in documents:
        text = path.read_text()
        lists = [(line, listed, right) for line, listed in lists_in(text, names)]
        lists += [(line, listed, (phases,)) for line, listed in tables_in(text)]
        for line, listed, allowed in lists:
            seen += 1
            if listed not in allowed:
                wrong.append(f"{path.relative_to(root)}:{line}: {', '.join(listed)}; recovery.def: {', '.join(phases)}")
    for folder in FOLDERS_OF_CODE:
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            if path in documents:
                continue
            for line, listed in lists_in(path.read_text(), names):
                wrong.append(f"{path.relative_to(root)}:{line}: a list of its own: {', '.join(listed)}")
    if seen < 4:
        wrong.append(f"only {seen} lists were found in the documents")
    print("\n".join(wrong) if wrong else f"{len(phases)} phases, named in {seen} places of the documents")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
