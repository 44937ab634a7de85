#!/usr/bin/env python3
"""judge.py [OPTIONS] JUDGE TROUPE-INFO: has NumPy and SciPy, or CuPy, judge random calls of troupe's libraries.

Every operation of a library comes up in every dtype that the engine computes it in, with random shapes, options and
contents. JUDGE is the program that runs the calls, TROUPE-INFO tells what there is to be judged: what is not
judged is named with its reason, and anything else that is left out is a failure. The engine is the one that
TROUPE_TEST_BACKEND names, or cpu. Exit status 77 (skipped) where the judge's library is not installed.
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


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", choices=["numpy", "cupy"], default="numpy")
    parser.add_argument("--library", action="append", choices=LIBRARIES, help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="how often each call comes up (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--idle", action="store_true",
                        help="judge as though no call had done anything: each operation must be found wrong")
    parser.add_argument("program")
    parser.add_argument("info")
    return parser.parse_args()


def load_judge(name):
    """The module that computes, or the reason why there is none."""
    try:
        importlib.import_module("scipy")
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
    """Whether the judge would notice: of each operation and dtype, some call that does nothing is found wrong."""
    found, all_of_them = set(), set()
    for case in cases:
        case.results = {name: stored for name, (stored, _, _) in case.arrays.items()}
        all_of_them.add((case.operation, case.dtype))
        if case.faults():
            found.add((case.operation, case.dtype))
    for operation, dtype in sorted(all_of_them - found):
        print(f"{operation} {dtype}: nobody would notice if it did nothing")
    print(f"{len(found)} of {len(all_of_them)} operations and dtypes would be noticed")
    return 0 if found == all_of_them else 1


def main():
    options = arguments()
    judge, why = load_judge(options.judge)
    if judge is None:
        print(f"skipped: {why}")
        return 77
    import numpy as np

    engine = os.environ.get("TROUPE_TEST_BACKEND") or "cpu"
    libraries = options.library or LIBRARIES
    there = operations(options.info, engine, libraries)
    random = np.random.default_rng(options.seed)
    cases, not_judged = [], {}
    for library in libraries:
        module = importlib.import_module(f"cases_{library}")
        cases += [case for case in module.cases(judge, random, options.rounds) if case.dtype in there[case.operation]]
        not_judged.update(module.NOT_JUDGED)

    judged = {(case.operation, case.dtype) for case in cases}
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
    missing = set()
    for case in cases:
        if "not installed" in case.answer:
            missing.add(f"{case.operation}: {case.answer}")
            continue
        wrong = case.faults() if case.answer == "ok" else [case.answer]
        if wrong:
            failed += 1
            shapes = {name: spec for name, (_, _, spec) in case.arrays.items()}
            print(f"{case.operation}: {case.call} {case.dtype} {case.arguments} {shapes}")
            print("\n".join("    " + line for line in wrong))
    print("\n".join(sorted(missing)))
    print(f"{len(cases)} calls of {len({o for o, _ in judged})} operations on {engine}, judged by {judge.__name__} "
          f"{judge.__version__}, seed {options.seed}: {failed} wrong")
    if failed == 0 and len(missing) == len({case.operation for case in cases}):
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
