#!/usr/bin/env python3
"""scaling_report.py RESULTS TIME RECOVERY: makes the report of a sweep (see sweep.sh beside this file).

Reads RESULTS/runs.tsv (kind, ranks, exit status and report of each run), the reports, and drill.json if it is there.
Writes scaling.json, report.md and, by gnuplot, time.svg, efficiency.svg and recovery.svg, all in RESULTS, and prints the
tables. TIME and RECOVERY name fields of the reports. Exit status: 0; 1 if there is no time of any run.

Times are means. The intervals have a confidence of 95 %, by Student's t-distribution: of a mean, with s the standard
deviation of n runs, t(n - 1) s / sqrt(n). Efficiency is a ratio of two means, (b T_b) / (p T_p) for strong scaling from b
ranks to p and T_b / T_p for weak; the variances of the logarithms of both means add up, with Welch's degrees of freedom,
and the interval is the ratio times exp(+-t sqrt(sum)).
"""
import json
import math
import os
import shutil
import statistics
import subprocess
import sys


def student_cdf(t, dof):
    """P(T <= t) for t >= 0, by Simpson's rule on the density (dof may be a fraction)."""
    scale = math.exp(math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2)) / math.sqrt(dof * math.pi)
    angle = math.atan(t / math.sqrt(dof))  # with x = sqrt(dof) tan(a) the density is cos(a)^(dof - 1): smooth and bounded
    steps = 2000
    heights = [math.cos(angle * i / steps) ** (dof - 1) for i in range(steps + 1)]
    integral = heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
    return 0.5 + scale * math.sqrt(dof) * integral * angle / steps / 3


def student_quantile(dof, confidence=0.95):
    """t such that P(|T| <= t) is `confidence`."""
    low, high = 0.0, 1e4
    while high - low > 1e-9 * (1 + low):
        middle = (low + high) / 2
        if 2 * student_cdf(middle, dof) - 1 < confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def mean_of(values):
    """Mean, half the width of its interval (None for one value), and how many values."""
    half = None
    if len(values) > 1:
        half = student_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": statistics.fmean(values), "half_width": half, "runs": len(values)}


def ratio_of(base, other, factor):
    """factor * mean(base) / mean(other), with the ends of its interval (None where a mean has none)."""
    ratio = factor * statistics.fmean(base) / statistics.fmean(other)
    if len(base) < 2 or len(other) < 2:
        return {"value": ratio, "low": None, "high": None}
    parts = [statistics.variance(v) / len(v) / statistics.fmean(v) ** 2 for v in (base, other)]
    total = sum(parts)
    if total == 0:
        return {"value": ratio, "low": ratio, "high": ratio}
    dof = total**2 / sum(p**2 / (len(v) - 1) for p, v in zip(parts, (base, other)))
    width = student_quantile(dof) * math.sqrt(total)
    return {"value": ratio, "low": ratio * math.exp(-width), "high": ratio * math.exp(width)}


def field(report, path):
    """The numbers that `path` names: "seconds", "a.b", "recoveries.*.total_ms"."""
    found = [report]
    for name in path.split("."):
        inner = []
        for value in found:
            if name == "*" and isinstance(value, list):
                inner += value
            elif isinstance(value, dict) and name in value:
                inner.append(value[name])
        found = inner
    return [v for v in found if isinstance(v, (int, float)) and not isinstance(v, bool)]


def time_of(report, expression):
    """Seconds: the field, or the first divided by the second. None: the report has no such number.

    Fields with _ms in their names are in milliseconds.
    """
    values = []
    for path in expression.split("/"):
        numbers = field(report, path)
        if len(numbers) != 1:
            return None
        values.append(numbers[0])
    if any(v <= 0 for v in values):
        return None
    unit = 1e-3 if "_ms" in expression.split("/")[0] else 1
    return unit * values[0] / math.prod(values[1:])


def read_runs(folder, time, recovery):
    """The times of all runs by kind and ranks, recoveries in ms by ranks, and a line for each run that has no time."""
    times, recoveries, wrong = {}, {}, []
    with open(os.path.join(folder, "runs.tsv")) as lines:
        runs = [line.rstrip("\n").split("\t") for line in lines]
    for kind, ranks, status, name in runs:
        try:
            with open(os.path.join(folder, name)) as file:
                report = json.load(file)
        except (OSError, ValueError):
            report = None
        if status != "0" or report is None:
            wrong.append(f"{name}: status {status}" + ("" if report is not None else ", and no report"))
            continue
        seconds = time_of(report, time)
        if seconds is None:
            wrong.append(f"{name}: its report has no time {time}")
            continue
        times.setdefault(kind, {}).setdefault(int(ranks), []).append(seconds)
        recoveries.setdefault(int(ranks), []).extend(field(report, recovery))
    return times, {r: v for r, v in sorted(recoveries.items()) if v}, wrong


def summarise(folder, time, recovery):
    times, recoveries, wrong = read_runs(folder, time, recovery)
    with open(os.path.join(folder, "command.txt")) as file:
        result = {"command": file.read().strip(), "time": time, "measurements": [], "recoveries": [], "drill": [], "simulated": [],
                  "without_time": wrong}
    for kind, by_ranks in times.items():
        first = min(by_ranks)
        for ranks, values in sorted(by_ranks.items()):
            factor = first / ranks if kind == "strong" else 1
            efficiency = ratio_of(by_ranks[first], values, factor)
            if ranks == first:
                efficiency = {"value": 1, "low": None, "high": None}  # by definition
            result["measurements"].append({"kind": kind, "ranks": ranks, "seconds": mean_of(values),
                                           "fastest": min(values), "efficiency": efficiency})
    for ranks, values in recoveries.items():
        result["recoveries"].append({"ranks": ranks, "milliseconds": mean_of(values), "longest": max(values)})
    drill = os.path.join(folder, "drill.json")
    if os.path.exists(drill):
        with open(drill) as file:
            report = json.load(file)
        result["drill"] = [{"ranks": s["ranks"], "milliseconds": mean_of(s["total_ms_values"]),
                            "longest": max(s["total_ms_values"])} for s in report["series"]]
        result["simulated"] = [{"ranks": w["ranks"], "milliseconds": w["total_ms"], "fault": w["kind"]}
                               for w in report["simulated"]]
    return result


def number(value):
    return f"{value:.4g}"


def interval(summary, scale=1):
    half = "" if summary["half_width"] is None else f" ± {number(scale * summary['half_width'])}"
    return number(scale * summary["mean"]) + half


def tables(result):
    """The tables of the report, as Markdown."""
    unit = f"`{result['time']}` in ms"
    text = ""
    for kind in dict.fromkeys(m["kind"] for m in result["measurements"]):
        what = "one problem, divided among the ranks" if kind == "strong" else "the same problem for each rank"
        text += f"\n## {kind.capitalize()} scaling: {what}\n\n"
        text += f"| ranks | runs | {unit} | fastest | efficiency | interval |\n|--:|--:|--:|--:|--:|--:|\n"
        for m in (m for m in result["measurements"] if m["kind"] == kind):
            e = m["efficiency"]
            ends = "" if e["low"] is None else f"{e['low']:.3f} to {e['high']:.3f}"
            text += (f"| {m['ranks']} | {m['seconds']['runs']} | {interval(m['seconds'], 1e3)} | "
                     f"{number(1e3 * m['fastest'])} | {e['value']:.3f} | {ends} |\n")
    if result["recoveries"] or result["drill"]:
        text += "\n## Recovery\n\n| ranks | | recoveries | ms | longest |\n|--:|---|--:|--:|--:|\n"
        for how, rows in (("measured", result["recoveries"]), ("measured by troupe-drill", result["drill"])):
            for r in rows:
                text += (f"| {r['ranks']} | {how} | {r['milliseconds']['runs']} | {interval(r['milliseconds'])} | "
                         f"{number(r['longest'])} |\n")
        for s in result["simulated"]:
            text += f"| {s['ranks']} | **simulated** ({s['fault']}) | | {number(s['milliseconds'])} | |\n"
    return text


def markdown(result, plots):
    text = f"# Scaling\n\n`{result['command']}`\n\n"
    text += ("Means, with intervals of 95 % confidence by Student's t-distribution. Efficiency is the time on the fewest ranks "
             "divided by the\ntime on this number of ranks; for strong scaling it is divided by the ratio of both numbers, too.\n")
    text += tables(result)
    if result["simulated"]:
        text += ("\nSimulated: troupe-drill sends the real protocol's messages among so many ranks and takes for the devices' "
                 "work what it\nmeasured on the ranks that were there. Nothing ran on so many.\n")
    for line in result["without_time"]:
        text += f"\n- no time: {line}"
    text += "\n" if result["without_time"] else ""
    for name in plots:
        text += f"\n![{name} against ranks]({name}.svg)\n"
    return text


def data_block(name, rows):
    lines = "\n".join(" ".join(number(v) for v in row) for row in rows)
    return f"${name} << EOD\n{lines}\nEOD\n"


def gnuplot_script(result):
    """What gnuplot is to do, and the names of the plots."""
    script, plots = "set terminal svg size 640,420 dynamic background 'white'\nset key outside bottom horizontal\n", []
    script += "set logscale x 2\nset xlabel 'ranks'\nset grid\n"
    kinds = list(dict.fromkeys(m["kind"] for m in result["measurements"]))
    for kind in kinds:
        mine = [m for m in result["measurements"] if m["kind"] == kind]
        first = mine[0]
        ideal = lambda m: first["ranks"] / m["ranks"] if kind == "strong" else 1
        script += data_block("time_" + kind, [
            (m["ranks"], 1e3 * m["seconds"]["mean"], 1e3 * (m["seconds"]["half_width"] or 0),
             1e3 * first["seconds"]["mean"] * ideal(m)) for m in mine])
        script += data_block("efficiency_" + kind, [
            (m["ranks"], e["value"], e["low"] or e["value"], e["high"] or e["value"])
            for m in mine for e in [m["efficiency"]]])

    def plot(name, label, curves, ranks, values):
        """Intervals may leave the plot: its height is that of the values."""
        plots.append(name)
        tics = ", ".join(str(r) for r in sorted(set(ranks)))
        return (f"set output '{name}.svg'\nset ylabel '{label}'\nset xtics ({tics})\n"
                f"set xrange [{min(ranks) / 1.2}:{max(ranks) * 1.2}]\nset yrange [0:{1.3 * max(values)}]\n"
                "plot " + ", \\\n  ".join(curves) + "\n")

    if kinds:
        ranks = [m["ranks"] for m in result["measurements"]]
        script += plot("time", "ms", [
            curve for i, kind in enumerate(kinds, 1) for curve in (
                f"$time_{kind} using 1:2:3 with yerrorlines lt {i} pt 7 title '{kind}'",
                f"$time_{kind} using 1:4 with lines lt {i} dt 2 title '{kind}, ideal'")],
            ranks, [1e3 * m["seconds"]["mean"] for m in result["measurements"]])
        script += plot("efficiency", "efficiency", [
            f"$efficiency_{kind} using 1:2:3:4 with yerrorlines lt {i} pt 7 title '{kind}'"
            for i, kind in enumerate(kinds, 1)] + ["1 with lines lc 'gray' dt 2 notitle"],
            ranks, [1] + [m["efficiency"]["value"] for m in result["measurements"]])
    curves = []
    for i, (name, title) in enumerate((("recoveries", "measured"), ("drill", "measured by troupe-drill")), 1):
        if not result[name]:
            continue
        script += data_block(name, [(r["ranks"], r["milliseconds"]["mean"], r["milliseconds"]["half_width"] or 0)
                                    for r in result[name]])
        curves.append(f"${name} using 1:2:3 with yerrorlines lt {i} pt 7 title '{title}'")
    if result["simulated"]:
        script += data_block("simulated", [(s["ranks"], s["milliseconds"]) for s in result["simulated"]])
        curves.append("$simulated using 1:2 with linespoints lt 3 dt 2 pt 6 title 'simulated, nothing ran on so many'")
    if curves:
        rows = result["recoveries"] + result["drill"] + result["simulated"]
        script += plot("recovery", "recovery in ms", curves, [r["ranks"] for r in rows],
                       [r["longest"] if "longest" in r else r["milliseconds"] for r in rows])
    return script, plots


def main():
    folder, time, recovery = sys.argv[1:]
    result = summarise(folder, time, recovery)
    for line in result["without_time"]:
        print(f"troupe: no time: {line}", file=sys.stderr)
    if not result["measurements"]:
        sys.exit(f"troupe: error: no run has a time; see {folder}")
    script, plots = gnuplot_script(result)
    if shutil.which("gnuplot") is None:
        print("troupe: no plots: gnuplot is not installed")
        plots = []
    else:
        subprocess.run(["gnuplot"], input=script, text=True, cwd=folder, check=True)
    with open(os.path.join(folder, "scaling.json"), "w") as file:
        json.dump(result, file, indent=1)
    with open(os.path.join(folder, "report.md"), "w") as file:
        file.write(markdown(result, plots))
    print(tables(result).strip())
    print(f"troupe: the report: {os.path.join(folder, 'report.md')}")
    if result["without_time"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
