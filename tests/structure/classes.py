#!/usr/bin/env python3
"""Counts what a class of src/ consists of.

    classes.py SOURCE-FOLDER [--list]

Fails on a class of more than 30 functions, and on one whose functions are defined in several .cpp files.
--list: prints all classes of more than 20 functions, and all of several files.

Fails also on a field of a message (MESSAGES) that nobody owns: no file that names the message reads it.

Not counted: constructors, destructors and assignments; what a nested class has; tests; files of classes of the public
headers.
"""
import collections
import pathlib
import re
import sys

MOST = 30
# Where messages are, one struct for each kind; and what a function reads of every message of that file.
MESSAGES = {
    "src/rank/protocol/message.hpp": {"rank", "covered"},
    "src/common/wire/control.hpp": set(),
    "src/rank/token/token_message.hpp": {"key"},
}
SOURCES = ("*.hpp", "*.cpp", "*.cu", "*.cuh")


def without_comments(text):
    """The text without comments, preprocessor lines and the contents of literals."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*'
    def replaced(match):
        return '""' if match.group()[0] == '"' else "0" if match.group()[0] == "'" else " "
    return re.sub(pattern, replaced, text, flags=re.S | re.M)


def end_of(text, start, opening="{", closing="}"):
    """Behind the bracket that closes the one at start."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


HEAD = re.compile(r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?([A-Za-z_]\w*)\s*(?:final\s*)?(?::[^;{()]*)?\{")


def bodies(text, outer=""):
    """(name, body) of each class, of nested ones as Outer::Inner."""
    at = 0
    while True:
        match = HEAD.search(text, at)
        if not match:
            return
        if re.search(r"\benum\s+$", text[: match.start()][-8:]):
            at = match.end()
            continue
        end = end_of(text, match.end() - 1)
        name = (outer + "::" if outer else "") + match.group(1)
        body = text[match.end() : end - 1]
        yield name, body
        yield from bodies(body, name)
        at = end


def functions(name, body):
    """How many functions the body declares."""
    own = name.rsplit("::", 1)[-1]
    # Without nested classes and the bodies of functions.
    flat, at = [], 0
    while at < len(body):
        if body[at] == "{":
            at = end_of(body, at)
            flat.append(";")
        else:
            flat.append(body[at])
            at += 1
    count = 0
    for statement in re.split(r";|\b(?:public|private|protected)\s*:", "".join(flat)):
        statement = re.sub(r"\[\[.*?\]\]", " ", statement, flags=re.S).strip()
        statement = re.sub(r"^template\s*<[^;]*?>\s*(?=[\w:\[])", "", statement)
        if "(" not in statement or re.match(r"(using|friend|static_assert|typedef|enum|class|struct|explicit)\b", statement):
            continue
        head = statement.split("(", 1)[0]
        if "=" in head and "operator" not in head:
            continue  # a member with an initialiser
        word = re.search(r"([~\w]+)\s*$", head)
        if not word and "operator" not in head:
            continue
        if "operator=" in head.replace(" ", "") and "operator==" not in head.replace(" ", ""):
            continue
        if word and word.group(1) in (own, "~" + own, "alignas", "requires", "decltype"):
            continue
        if re.search(r"\bstd::function\s*<[^(]*$", head):
            continue  # a member
        count += 1
    return count


def kind_of(path):
    """Halves of a library have classes of the same name for each engine."""
    return "cuda" if "cuda" in path.stem or path.suffix in (".cu", ".cuh") else "cpu" if "cpu" in path.stem else ""


def look_at(root):
    """The largest count of functions of each class, and the files in which each class has functions."""
    counts, declared, defined = collections.Counter(), collections.defaultdict(set), []
    public = {name for path in (root / "include").rglob("*.hpp")
              for name, _ in bodies(without_comments(path.read_text(errors="replace")))}
    for pattern in SOURCES:
        for path in sorted((root / "src").rglob(pattern)):
            if path.stem.endswith("test"):
                continue
            text = without_comments(path.read_text(errors="replace"))
            for name, body in bodies(text):
                counts[name] = max(counts[name], functions(name, body))
                declared[name].add((path.parent, kind_of(path)))
            # A file with "missing" in its name stands in the place of another one, where a library is not installed.
            if path.suffix in (".cpp", ".cu") and "missing" not in path.stem:
                pattern_of_definition = r"^[^\s#}/][^;={}()]*?\b([A-Z]\w*(?:::[A-Z]\w*)*)::(?:~?\w+|operator\S+)\("
                for match in re.finditer(pattern_of_definition, text, re.M):
                    defined.append((match.group(1), path))
    files = collections.defaultdict(set)
    for name, path in defined:
        if name not in declared or name in public:
            continue
        # Of several classes with one name each has its folder, and its engine.
        key = (name,) if len(declared[name]) == 1 else (name, path.parent, kind_of(path))
        files[key].add(str(path.relative_to(root)))
    return counts, {key[0]: paths for key, paths in files.items() if len(paths) > 1}


def fields_of(body):
    """The fields of a struct without functions."""
    body = re.sub(r"\benum\b[^{;]*\{[^}]*\}", "", body)
    nested = HEAD.search(body)
    while nested:
        body = body[: nested.start()] + body[end_of(body, nested.end() - 1) :]
        nested = HEAD.search(body)
    for statement in map(str.strip, body.split(";")):
        match = re.match(r"(?!using\b|friend\b)[\w:<>,\s]+?\s(\w+)\s*(?:=.*|\{.*\})?$", statement, re.S)
        if match:
            yield match.group(1)


def fields_without_owner(root):
    """Each field of a message that is read in no file which names the message, as `FILE: MESSAGE::FIELD`."""
    texts = {path: without_comments(path.read_text(errors="replace")) for pattern in SOURCES
             for path in (root / "src").rglob(pattern) if not path.stem.endswith("test")}
    for file, of_all in MESSAGES.items():
        if root / file not in texts:
            continue
        for name, body in bodies(texts[root / file]):
            if "::" in name or not re.search(rf"\b\w+::{name}\b", texts[root / file]):
                continue  # a part of one, or no message
            readers = [text for path, text in texts.items()
                       if path != root / file and name in text and re.search(rf"\b{name}\b", text)]
            for field in fields_of(body):
                read = rf"(?:\w|\)|\])(?:\.|->){field}\b(?!\s*=[^=])"
                if field not in of_all and not any(re.search(read, text) for text in readers):
                    yield f"{file}: {name}::{field}"


def main():
    root = pathlib.Path(sys.argv[1])
    counts, spread = look_at(root)
    if "--list" in sys.argv:
        for name, count in counts.most_common():
            if count > 20:
                print(f"{count:4} {name}")
        for name, paths in sorted(spread.items()):
            print(name, *sorted(paths))
        return 0
    large = sorted(name for name, count in counts.items() if count > MOST)
    for name in large:
        print(f"{name}: {counts[name]} functions, more than {MOST}: it is several classes")
    for name in sorted(spread):
        print(f"{name}: defined in several files: {', '.join(sorted(spread[name]))}")
    lost = list(fields_without_owner(root))
    for field in lost:
        print(f"{field}: nobody who names the message reads it")
    return 1 if large or spread or lost else 0


sys.exit(main())
