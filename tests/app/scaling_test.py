#!/usr/bin/env python3
"""scaling_test.py SCRIPTS BIN: scaling.sh runs a program as it says, and its report has the numbers of the runs' own."""
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

SCRIPTS, BIN = sys.argv[1:3]
sys.path.insert(0, os.path.join(SCRIPTS, "slurm"))
import scaling_report as report  # noqa: E402

CG = ["troupe-cg", "--stencil", "{points}", "--commit-every", "5"]


def scaling(folder, *options):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TROUPE_")}
    environment.update(PATH=BIN + ":" + environment["PATH"], TROUPE_ENGINE="cpu", TROUPE_LOG_LEVEL="error",
                       TROUPE_FLIGHT_DIR="none", TROUPE_SITE_CONFIG="", OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.run([os.path.join(SCRIPTS, "scaling.sh"), "--results", folder, *options], env=environment,
                          capture_output=True, text=True, timeout=120)


def read_json(*path):
    with open(os.path.join(*path)) as file:
        return json.load(file)


def read(*path):
    with open(os.path.join(*path)) as file:
        return file.read()


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="troupe-scaling-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def test_the_report_has_the_numbers_of_the_runs(self):
        done = scaling(self.folder, "--kind", "weak", "--ranks", "1,2", "--size", "12", "--repeat", "2", "--larger", "64",
                       "--", *CG, "--fault", "kill@6:{last}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = read_json(self.folder, "scaling.json")
        times, recoveries = {}, {}
        for ranks in (1, 2):
            reports = [read_json(self.folder, f"weak-{ranks}-{run}.json") for run in (1, 2)]
            for one in reports:
                self.assertEqual((one["ranks"], one["rows"]), (ranks, ranks * 12**3))
                self.assertEqual([r["rank"] for r in one["recoveries"]], [ranks - 1])
            times[ranks] = [r["seconds"] / r["iterations"] for r in reports]
            recoveries[ranks] = [r["recoveries"][0]["total_ms"] for r in reports]
        self.assertEqual([m["ranks"] for m in result["measurements"]], [1, 2])
        for measured in result["measurements"]:
            mine = times[measured["ranks"]]
            self.assertAlmostEqual(measured["seconds"]["mean"], sum(mine) / 2)
            self.assertAlmostEqual(measured["fastest"], min(mine))
            # Of two values: t(1) = 12.7062, and s / sqrt(2) is half their distance.
            self.assertAlmostEqual(measured["seconds"]["half_width"], 12.7062 * abs(mine[0] - mine[1]) / 2, delta=1e-6)
        self.assertAlmostEqual(result["measurements"][1]["efficiency"]["value"], sum(times[1]) / sum(times[2]))
        for recovered in result["recoveries"]:
            mine = recoveries[recovered["ranks"]]
            self.assertAlmostEqual(recovered["milliseconds"]["mean"], sum(mine) / 2)
            self.assertEqual(recovered["longest"], max(mine))
        drill = read_json(self.folder, "drill.json")
        self.assertEqual([s["milliseconds"] for s in result["simulated"]], [drill["simulated"][0]["total_ms"]])
        text = read(self.folder, "report.md")
        self.assertIn("| 64 | **simulated** (kill) |", text)
        self.assertIn(f"| 2 | 2 | {1e3 * sum(times[2]) / 2:.4g} ± ", text)
        if shutil.which("gnuplot"):
            for plot in ("time", "efficiency", "recovery"):
                self.assertIn(f"({plot}.svg)", text)
                self.assertIn("</svg>", read(self.folder, plot + ".svg"))
        else:
            self.assertIn("no plots: gnuplot is not installed", done.stdout)

    def test_a_run_that_fails_costs_only_itself(self):
        program = os.path.join(self.folder, "program")
        with open(program, "w") as file:
            file.write('#!/bin/sh\n[ "$OMPI_COMM_WORLD_SIZE" = 1 ] || exit 3\nexec troupe-cg "$@"\n')
        os.chmod(program, 0o755)
        done = scaling(self.folder, "--kind", "strong", "--ranks", "1,2", "--size", "8", "--repeat", "1", "--", program,
                       *CG[1:], "--standby", "off")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("strong, 2 ranks: status 3", done.stdout)
        self.assertEqual([m["ranks"] for m in read_json(self.folder, "scaling.json")["measurements"]], [1])
        self.assertIn("no time: strong-2-1.json: status 3", read(self.folder, "report.md"))

    def test_what_cannot_be_is_one_line(self):
        for options, why in ((["--ranks", "2,1"], "does not rise"), (["--ranks", "one"], "is no number of ranks"),
                             (["--size", "0"], "is no size"), (["--often", "3"], "unknown option '--often'"),
                             (["--repeat"], "--repeat needs a value"), (["--kind", "fair"], "neither strong, weak nor both"),
                             (["--ranks", "1,3", "--", *CG], "do not divide among 3 ranks by halves"),
                             (["--", "no-such-program"], "there is no program 'no-such-program'")):
            done = scaling(os.path.join(self.folder, "none"), *options)
            self.assertEqual(done.returncode, 2, options)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(why, done.stderr)


class Arithmetic(unittest.TestCase):
    def test_quantiles_of_student(self):
        # As in tables of the t-distribution, 97.5 %.
        for dof, t in ((1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042), (1000, 1.962)):
            self.assertAlmostEqual(report.student_quantile(dof), t, delta=6e-4)

    def test_intervals(self):
        mean = report.mean_of([1.0, 2.0, 3.0])
        self.assertAlmostEqual(mean["half_width"], 4.303 / math.sqrt(3), delta=1e-3)
        self.assertIsNone(report.mean_of([1.0])["half_width"])
        base, other = [4.0, 4.4, 3.6], [2.0, 2.2, 1.8]  # variances alike in relation to the means: Welch's are 4 degrees
        ratio = report.ratio_of(base, other, 0.5)
        self.assertAlmostEqual(ratio["value"], 1)
        width = 2.776 * math.sqrt(2 * statistics.variance(other) / 3 / 4)
        self.assertAlmostEqual(ratio["high"], math.exp(width), delta=1e-3)
        self.assertAlmostEqual(ratio["low"] * ratio["high"], 1)

    def test_efficiency_of_both_kinds(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = ""
            for kind, ranks, seconds in (("strong", 2, 8), ("strong", 4, 5), ("weak", 2, 8), ("weak", 4, 10)):
                name = f"{kind}-{ranks}.json"
                lines += f"{kind}\t{ranks}\t0\t{name}\n"
                with open(os.path.join(folder, name), "w") as file:
                    json.dump({"seconds": seconds, "steps": 2, "list": [{"ms": 1}, {"ms": 3}]}, file)
            for name, text in (("runs.tsv", lines), ("command.txt", "program\n")):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            result = report.summarise(folder, "seconds/steps", "list.*.ms")
        found = {(m["kind"], m["ranks"]): m for m in result["measurements"]}
        self.assertEqual(found["strong", 4]["seconds"]["mean"], 2.5)
        self.assertAlmostEqual(found["strong", 4]["efficiency"]["value"], 2 * 8 / (4 * 5))
        self.assertAlmostEqual(found["weak", 4]["efficiency"]["value"], 8 / 10)
        self.assertEqual(found["weak", 2]["efficiency"]["value"], 1)
        self.assertEqual([(r["ranks"], r["longest"]) for r in result["recoveries"]], [(2, 3), (4, 3)])

    def test_a_report_without_the_time(self):
        self.assertIsNone(report.time_of({"seconds": 3}, "seconds/iterations"))
        self.assertIsNone(report.time_of({"seconds": 0.0}, "seconds"))
        self.assertIsNone(report.time_of({"seconds": "3"}, "seconds"))
        self.assertEqual(report.time_of({"a": {"b": 6}, "n": 3}, "a.b/n"), 2)
        self.assertEqual(report.time_of({"series": [{"wall_ms": 500}]}, "series.*.wall_ms"), 0.5)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
