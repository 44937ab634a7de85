#!/usr/bin/env python3
"""nccl_tests.py BIN NCCL_TESTS RANKS RESULTS: troupe-perf beside nccl-tests, by turns on the same GPUs.

BIN has troupe's programs, NCCL_TESTS those of nccl-tests (github.com/NVIDIA/nccl-tests), built with MPI=1. Both get the same
options, one process for each GPU. Each operation is measured REPEAT times (an environment variable, 3 by default), the two
programs by turns; a time is the median. Both tables are read by the same rule: troupe-perf has nccl-tests' columns.

Writes RESULTS/nccl-tests.md and RESULTS/nccl-tests.json, and prints the first. Exit status: 0; 1 if a program failed or any
value was wrong; 2 for bad usage.
"""
import json
import os
import re
import statistics
import subprocess
import sys

OPERATIONS = {  # troupe-perf's names of nccl-tests' programs
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter", "broadcast": "broadcast",
    "reduce": "reduce", "all_to_all": "alltoall", "gather": "gather", "scatter": "scatter", "send_recv": "sendrecv",
}
OPTIONS = ["-b", "8", "-e", "256M", "-f", "32", "-n", "20", "-w", "5", "-c", "1"]
FIGURES = r"(\S+) +(\S+) +(\S+) +(\S+)"  # time in us, algbw and busbw in GB/s, #wrong
ROW = re.compile(r"^ *(\d+) +(\d+) +(\w+) +(\w+) +(-?\d+) +" + FIGURES + " +" + FIGURES)


def rows_of(table):
    """{size: [time out of place, time in place or None]}, and how many values are wrong in all."""
    rows, wrong = {}, 0
    for line in table.splitlines():
        match = ROW.match(line)
        if not match:
            continue
        size, times, bad = int(match[1]), (match[6], match[10]), (match[9], match[13])
        rows[size] = [None if time == "N/A" else float(time) for time in times]
        wrong += sum(int(float(number)) for number in bad if number != "N/A")
    return rows, wrong


def run(ranks, command):
    job = subprocess.run(["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *command],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
    rows, wrong = rows_of(job.stdout)
    if job.returncode != 0 or wrong or not rows:
        print(f"{' '.join(command)}: status {job.returncode}, {len(rows)} rows, {wrong} wrong values\n{job.stdout}", file=sys.stderr)
        return None
    return rows


def measured(ranks, operation, program, bin_folder, nccl_tests, repeat):
    """The rows of one operation: a dict each, with the medians of both."""
    sides = {
        "troupe": [f"{bin_folder}/troupe-perf", "--engine", "cuda", "--operation", operation, *OPTIONS],
        "nccl_tests": [f"{nccl_tests}/{program}_perf", "-g", "1", *OPTIONS],
    }
    times = {side: [] for side in sides}
    for _ in range(repeat):
        for side, command in sides.items():
            rows = run(ranks, command)
            if rows is None:
                return None
            times[side].append(rows)
    result = []
    sizes = [set(rows) for side in times.values() for rows in side]
    for size in sorted(set.intersection(*sizes) - {0}):  # 0: nothing is left of the smallest size for each rank
        row = {"operation": operation, "size": size}
        for place, name in enumerate(("out_of_place", "in_place")):
            for side, tables in times.items():
                values = [table[size][place] for table in tables]
                row[f"{side}_{name}_us"] = None if None in values else statistics.median(values)
        result.append(row)
    return result


def cells(row, name):
    """Both times and their ratio, as cells."""
    troupe, other = row[f"troupe_{name}_us"], row[f"nccl_tests_{name}_us"]
    ratio = f"{troupe / other:.2f}" if troupe is not None and other else "N/A"
    return " | ".join("N/A" if time is None else f"{time:.1f}" for time in (troupe, other)) + f" | {ratio}"


def report(ranks, repeat, rows):
    lines = [
        f"# troupe-perf beside nccl-tests, {ranks} GPUs",
        "",
        f"`{' '.join(OPTIONS)}`, float, sum; medians of {repeat} runs of each, by turns. Times in us; x is troupe's time over nccl-tests'.",
        "",
        "| operation | size (B) | troupe | nccl-tests | x | in place: troupe | nccl-tests | x |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {row['operation']} | {row['size']} | {cells(row, 'out_of_place')} | {cells(row, 'in_place')} |" for row in rows]
    return "\n".join(lines) + "\n"


def main():
    repeats = os.environ.get("REPEAT", "3")
    if len(sys.argv) != 5 or not all(re.fullmatch(r"[1-9]\d{0,5}", number) for number in (sys.argv[3], repeats)):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    bin_folder, nccl_tests, ranks, results = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    repeat = int(repeats)
    rows, failed = [], False
    for operation, program in OPERATIONS.items():
        of_one = measured(ranks, operation, program, bin_folder, nccl_tests, repeat)
        failed = failed or of_one is None
        rows += of_one or []
    os.makedirs(results, exist_ok=True)
    with open(f"{results}/nccl-tests.json", "w", encoding="utf-8") as file:
        json.dump({"ranks": ranks, "repeat": repeat, "options": OPTIONS, "rows": rows}, file, indent=1)
    with open(f"{results}/nccl-tests.md", "w", encoding="utf-8") as file:
        file.write(report(ranks, repeat, rows))
    print(report(ranks, repeat, rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
