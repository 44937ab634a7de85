#!/usr/bin/env python3
"""judge.py [OPTIONS] JUDGE TROUPE-INFO: has NumPy and SciPy, CuPy, or PyTorch judge random calls of troupe's libraries.

Every operation of a library comes up in every dtype that the engine computes it in, with random shapes, options and
contents. JUDGE is the program that runs the calls, TROUPE-INFO tells what there is to be judged: what is not
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

LIBRARIES = ["blas", "fft", "solver", "rng", "sparse", "primitives", "direct", "tensor"]
JUDGED_BY = {"numpy": LIBRARIES, "cupy": LIBRARIES, "torch": ["dnn"]}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", choices=list(JUDGED_BY), default="numpy")
    parser.add_argument("--library", action="append", choices=[*LIBRARIES, "dnn"],
                        help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="how often each call comes up (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--idle", action="store_true",
                        help="judge as though no call had done anything: each operation must be found wrong")
    parser.add_argument("program")
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
    cases, not_judged = [], {}
    for library in options.library:
        module = importlib.import_module(f"cases_{library}")
        cases += [case for case in module.cases(judge, random, options.rounds)
                  if case.table_dtype in there[case.operation]]
        not_judged.update(module.NOT_JUDGED)

    judged = {(case.operation, case.table_dtype) for case in cases}
    failed = 0
    for operation, dtypes in there.items():
        left_out = [dtype for dtype in dtypes if (operation, dtype) not in judged and operation not in not_judged]
        if left_out:
            print(f"{operation}: nobody judges {' '.join(left_out)}")
            failed += 1
    for operation, reason in not_judged.items():
        print(f"{operation} is not judged: {reason}")

    if options.idle:
        return judge_idle(cases)
    run(options.program, cases)
    missing, lacking = set(), {}
    for case in cases:
        if "not installed" in case.answer:
            missing.add(f"{case.operation}: {case.answer}")
            continue
        if case.may_lack and engine == "cuda" and case.answer.startswith("unsupported"):
            lacking.setdefault(f"{case.operation}: {case.call} {case.dtype}: {case.answer}", []).append(case)
            continue
        wrong = case.faults()
        if wrong:
            failed += 1
            shapes = {name: spec for name, (_, _, spec) in case.arrays.items()}
            print(f"{case.operation}: {case.call} {case.dtype} {case.arguments} {shapes}")
            print("\n".join("    " + line for line in wrong))
    print("\n".join(sorted(missing)))
    for what, of_them in sorted(lacking.items()):
        print(f"{what} ({len(of_them)})")
    refused = [case for of_them in lacking.values() for case in of_them]
    for operation in {case.operation for case in refused} - {case.operation for case in cases if case not in refused}:
        print(f"{operation}: all of its calls are unsupported")
        failed += 1
    print(f"{len(cases)} calls of {len({o for o, _ in judged})} operations on {engine}, judged by {judge.__name__} "
          f"{judge.__version__}, seed {options.seed}: {failed} wrong, {len(refused)} unsupported")
    if failed == 0 and len(missing) == len({case.operation for case in cases}):
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
