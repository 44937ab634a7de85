#!/usr/bin/env python3
"""judge.py [OPTIONS] JUDGE OBSERVED-CALLS TROUPE-INFO: has NumPy and SciPy, CuPy, or PyTorch judge random calls of troupe's libraries.

Every operation of a library comes up in every dtype that the engine computes it in, with random shapes, options and
contents. JUDGE is the program that runs calls that are drawn here, OBSERVED-CALLS makes those of the catalogue and notes
what came of them; a library has one or the other. TROUPE-INFO tells what there is to be judged: what is not
judged is named with its reason, and anything else that is left out is a failure. The engine is the one that
TROUPE_TEST_BACKEND names, or cpu. PyTorch judges dnn, in f64 on the CPU, and the others judge all else. Exit status 77
(skipped) where the judge's library is not installed.
"""

import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

#: whose calls are the catalogue's
OBSERVED = ["blas", "direct", "fft", "solver"]
LIBRARIES = ["blas", "fft", "solver", "rng", "sparse", "primitives", "direct", "tensor"]
JUDGED_BY = {"numpy": LIBRARIES, "cupy": LIBRARIES, "torch": ["dnn"]}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", choices=list(JUDGED_BY), default="numpy")
    parser.add_argument("--library", action="append", choices=[*LIBRARIES, "dnn"],
                        help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=3,
                        help="how often each call comes up (3); those of the catalogue 4 times as often")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--idle", action="store_true",
                        help="judge as though no call had done anything: each operation must be found wrong")
    parser.add_argument("program")
    parser.add_argument("observed")
    parser.add_argument("info")
    options = parser.parse_args()
    options.library = options.library or JUDGED_BY[options.judge]
    for library in options.library:
        if library not in JUDGED_BY[options.judge]:
            parser.error(f"{options.judge} does not judge {library}")
    return options


def load_judge(name):
    """The module that computes, or the reason why there is none."""
    try:
        importlib.import_module("numpy" if name == "torch" else "scipy")
        module = importlib.import_module(name)
        if name == "cupy":
            module.zeros(1).get()
        return module, ""
    except Exception as error:  # CuPy has errors of its own where there is no GPU
        return None, f"{name}: {error}"


def operations(info, engine, libraries):
    """{"blas.gemm": ["f32", …]} of the engine."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "operations.json"
        command = [info, "--operations", "--engine", engine, "--standby", "off", "--json", str(file)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        table = json.loads(file.read_text())
    return {name: engines[engine] for name, engines in table.items() if name.split(".")[0] in libraries}


def run(program, cases):
    """Runs all cases in one device; each gets its answer and what its arrays are then."""
    import numpy as np

    requests, operands, at = [], bytearray(), 0
    for case in cases:
        arrays = {}
        for name, (stored, dtype, spec) in case.arrays.items():
            arrays[name] = {"offset": at, "count": stored.size, **spec}
            operands += stored.tobytes()
            operands += bytes(-len(operands) % 16)
            at = len(operands)
        requests.append({"library": case.operation.split(".")[0], "call": case.call, "dtype": case.dtype,
                         "arrays": arrays, **case.arguments})
    with tempfile.TemporaryDirectory() as folder:
        files = [str(pathlib.Path(folder) / name) for name in ("requests", "operands", "results", "answers")]
        pathlib.Path(files[0]).write_text(json.dumps(requests))
        pathlib.Path(files[1]).write_bytes(operands)
        subprocess.run([program, *files], check=True)
        results = pathlib.Path(files[2]).read_bytes()
        answers = json.loads(pathlib.Path(files[3]).read_text())
    for case, request, answer in zip(cases, requests, answers):
        case.answer = answer
        case.results = {}
        for name, (stored, _, _) in case.arrays.items():
            where = request["arrays"][name]["offset"]
            case.results[name] = np.frombuffer(results, stored.dtype, stored.size, where)


def judge_idle(cases):
    """Whether the judge would notice: of each call and dtype, some case that does nothing is found wrong."""
    found, all_of_them = set(), set()
    for case in cases:
        case.results = {name: stored for name, (stored, _, _) in case.arrays.items()}
        all_of_them.add((case.operation, case.call, case.dtype))
        if case.faults():
            found.add((case.operation, case.call, case.dtype))
    for operation, call, dtype in sorted(all_of_them - found):
        print(f"{operation}: {call} {dtype}: nobody would notice if it did nothing")
    print(f"{len(found)} of {len(all_of_them)} calls and dtypes would be noticed")
    return 0 if found == all_of_them else 1


class Verdict:
    """What is found, and said at the end."""

    def __init__(self, engine):
        self.engine = engine
        self.failed = self.calls = 0
        self.judged = set()  # (operation, dtype)
        self.missing = set()  # what is not installed
        self.lacking = {}  # what is unsupported: how often
        self.worked = set()  # operations that were not, at least once

    def lacks(self, what, answer, may_lack):
        """Whether a call that ended so is not to be judged."""
        if "not installed" in answer:
            self.missing.add(f"{what}: {answer}")
        elif answer.startswith("unsupported") and self.engine == "cuda" and may_lack:
            self.lacking[f"{what}: {answer}"] = self.lacking.get(f"{what}: {answer}", 0) + 1
        else:
            return False
        return True

    def wrong(self, what, why):
        self.failed += 1
        print("\n".join([what, *("    " + line for line in why)]))


def observe(options, library, oracles):
    """The calls of the catalogue, and the bytes of their operands."""
    from case import narrow

    unusual = {f"{library}.{name}": {dtype: [list(number.tobytes()) for number in narrow(numbers, dtype)]
                                     for dtype, numbers in dtypes.items()}
               for name, dtypes in oracles.UNUSUAL.items()}
    request = {"libraries": [library], "seed": options.seed, "rounds": 4 * options.rounds, "unusual": unusual}
    with tempfile.TemporaryDirectory() as folder:
        files = [str(pathlib.Path(folder) / name) for name in ("request", "commands", "contents")]
        pathlib.Path(files[0]).write_text(json.dumps(request))
        subprocess.run([options.observed, *files], check=True)
        return json.loads(pathlib.Path(files[1]).read_text()), pathlib.Path(files[2]).read_bytes()


def judge_refusal(judge, oracles, call, contents, verdict, what):
    """A call with numbers that its first operation may have to refuse."""
    from command import Command

    if not call["commands"]:
        return verdict.wrong(what, [call["outcome"]])
    first = call["commands"][0]
    if verdict.lacks(what.split(" seed")[0], first["outcome"], True):
        return
    verdict.calls += 1
    if oracles.refuses(Command(judge, first, contents)) != first["outcome"].startswith("numeric"):
        verdict.wrong(what, [f"{first['operation']} {first['fields']} with unusual numbers: {first['outcome']}"])


def judge_observed(judge, options, library, verdict):
    from command import Command

    oracles = importlib.import_module(f"oracles_{library}")
    calls, contents = observe(options, library, oracles)
    judged, noticed = set(), set()
    for call in calls:
        what = f"{call['call']} {call['dtype']} seed {call['seed']}"
        if call["unusual"] and hasattr(oracles, "refuses"):
            judge_refusal(judge, oracles, call, contents, verdict, what)
            continue
        if call["outcome"] != "ok":
            if not verdict.lacks(what.split(" seed")[0], call["outcome"], True):
                verdict.wrong(what, [call["outcome"]])
            continue
        verdict.calls += 1
        for noted in call["commands"]:
            name = noted["operation"]
            if noted["outcome"] != "ok" or name in oracles.NOT_JUDGED:
                continue  # what the call says may be so
            dtype = noted["fields"]["dtype"]
            command = Command(judge, noted, contents, options.idle)
            oracles.ORACLES[name.split(".")[1]](command)
            judged.add((name, dtype))
            verdict.worked.add(name)
            wrong = command.faults()
            if wrong:
                noticed.add((name, dtype))
            if wrong and not options.idle:
                verdict.wrong(f"{what}: {name} {noted['fields']}", wrong)
    for name, dtype in sorted(judged - noticed if options.idle else ()):
        verdict.wrong(f"{name} {dtype}", ["nobody would notice if it did nothing"])
    verdict.judged |= judged
    return oracles.NOT_JUDGED


def main():
    options = arguments()
    judge, why = load_judge(options.judge)
    if judge is None:
        print(f"skipped: {why}")
        return 77
    import numpy as np

    np.seterr(invalid="ignore", over="ignore")  # numbers that are not finite are among the operands
    engine = os.environ.get("TROUPE_TEST_BACKEND") or "cpu"
    there = operations(options.info, engine, options.library)
    random = np.random.default_rng(options.seed)
    verdict, cases, not_judged = Verdict(engine), [], {}
    for library in options.library:
        if library in OBSERVED:
            not_judged.update(judge_observed(judge, options, library, verdict))
            continue
        module = importlib.import_module(f"cases_{library}")
        cases += [case for case in module.cases(judge, random, options.rounds)
                  if case.table_dtype in there[case.operation]]
        not_judged.update(module.NOT_JUDGED)

    verdict.judged |= {(case.operation, case.table_dtype) for case in cases}
    verdict.calls += len(cases)
    for operation, dtypes in there.items():
        left_out = [dtype for dtype in dtypes if (operation, dtype) not in verdict.judged and operation not in not_judged]
        if left_out and not any(operation in what for what in verdict.missing):
            verdict.wrong(operation, [f"nobody judges {' '.join(left_out)}"])
    for operation, reason in not_judged.items():
        print(f"{operation} is not judged: {reason}")

    if options.idle:
        verdict.failed += judge_idle(cases)
        print(f"{len(verdict.judged)} operations and dtypes would be noticed, but for {verdict.failed}")
        return 1 if verdict.failed else 0
    if cases:
        run(options.program, cases)
    for case in cases:
        if verdict.lacks(f"{case.operation}: {case.call} {case.dtype}", case.answer, case.may_lack):
            continue
        verdict.worked.add(case.operation)
        wrong = case.faults()
        if wrong:
            shapes = {name: spec for name, (_, _, spec) in case.arrays.items()}
            verdict.wrong(f"{case.operation}: {case.call} {case.dtype} {case.arguments} {shapes}", wrong)
    print("\n".join(sorted(verdict.missing)))
    for what, times in sorted(verdict.lacking.items()):
        print(f"{what} ({times})")
    for operation in sorted({what.split(":")[0] for what in verdict.lacking} - verdict.worked):
        print(f"{operation}: all of its calls are unsupported")
        verdict.failed += operation in there
    print(f"{verdict.calls} calls of {len({o for o, _ in verdict.judged})} operations on {engine}, judged by {judge.__name__} "
          f"{judge.__version__}, seed {options.seed}: {verdict.failed} wrong, {sum(verdict.lacking.values())} unsupported")
    if verdict.failed == 0 and not verdict.worked:
        return 77
    return 1 if verdict.failed else 0


if __name__ == "__main__":
    sys.exit(main())
