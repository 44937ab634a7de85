"""packaging.py SOURCE-TREE: what can be said of the Spack recipe without Spack, and of the Dockerfile without Docker. They
agree with the tree: the recipe's version is the project's, the options that both give to CMake exist, the recipe knows the
variants that it asks for, the scripts and programs that the Dockerfile runs are there, and so are its packages among those of
the scripts."""

import ast
import re
import sys
from pathlib import Path

tree = Path(sys.argv[1])
recipe = tree / "packaging/spack/spack_repo/troupe/packages/troupe/package.py"
module = compile(recipe.read_text(), recipe, "exec", ast.PyCF_ONLY_AST)
cmake = (tree / "CMakeLists.txt").read_text() + "".join(
    file.read_text() for file in (tree / "cmake").glob("*.cmake"))


def calls(name):
    """The calls of a function or method: (first argument, named arguments), as far as they are texts."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and name in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
            named = {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)}
            yield getattr(node.args[0], "value", None) if node.args else None, named


wrong = []
version = re.search(r"^project\(troupe VERSION (\S+)", cmake, re.M).group(1)
if [one for one, _ in calls("version")] != [version]:
    wrong.append(f"its version is not that of the project, {version}")
docker = (tree / "packaging/Dockerfile").read_text()
options = [option for option, _ in calls("define")] + re.findall(r"-D(\w+)=", docker)
for option in options:
    if not option.startswith("CMAKE_") and not re.search(
            rf"(option|set|find_\w+)\({option} ", cmake):
        wrong.append(f"CMake has no option {option}")
variants = {"cuda", "cuda_arch"} | {name for name, _ in calls("variant")}
asked = [named["when"] for _, named in calls("depends_on") if "when" in named]
asked += [spec for spec, _ in calls("satisfies")]
for name in re.findall(r"[+~ ]?(\w+)(?:=\w+)?", " ".join(asked)):
    if name not in variants:
        wrong.append(f"there is no variant {name}")
scripts = re.findall(r"\bscripts/\S+\.sh", docker)
wrong += [f"the Dockerfile runs {script}, which is not there" for script in scripts if not (tree / script).exists()]
programs = set(re.findall(r"\b(troupe-\w+)", docker))
wrong += [f"the Dockerfile runs {program}, which is not there" for program in programs if not (tree / "apps" / program).exists()]
known = (tree / "scripts/lib/packages.sh").read_text()
installed = re.search(r"apt-get install [^\\]*\\\n *([^&]*)&&", docker).group(1).split()
for package in set(installed) - {"g++"}:  # a part of build-essential
    if not re.search(rf"(?<![\w.-]){re.escape(package)}(?![\w.-])", known):
        wrong.append(f"the Dockerfile installs {package}, which scripts/lib/packages.sh does not know")
if len(options) < 6 or not scripts or not programs or len(asked) < 5:
    wrong.append("this check has not found what it is for")
for text in wrong:
    print(f"packaging: {text}")
print(f"{len(options)} options and {len(variants)} variants looked at")
sys.exit(bool(wrong))
