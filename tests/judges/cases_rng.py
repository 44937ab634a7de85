"""Random numbers: their laws, by SciPy's tests of distributions (Kolmogorov-Smirnov, chi squared)."""

import numpy as np

from case import Case

NOT_JUDGED = {
    "rng.sequence": "cuRAND's own host generator is compared bit for bit in conformance",
}
COUNT = 20000
#: Of the law of categories.
WEIGHTS = np.array([3.0, 0.5, 1, 7, 0.25, 2, 4])
#: A right generator fails one test in so many.
IMPROBABLE = 1e-6


def continuous(distribution):
    def check(case):
        from scipy import stats

        x = case.results["x"].astype(np.float64)
        yield "numbers that are not finite", int(np.sum(~np.isfinite(x))), 0
        if np.all(x == x[0]):
            yield "numbers that are all the same", x.size, 0
            return
        yield "1 - p of the law", 1 - stats.kstest(x, distribution.cdf).pvalue, 1 - IMPROBABLE
        # A draw is not that of its neighbour.
        yield "1 - p of neighbours that are not correlated", 1 - stats.spearmanr(x[:-1], x[1:]).pvalue, 1 - IMPROBABLE

    return check


def discrete(distribution):
    def check(case):
        from scipy import stats

        x = case.results["x"].astype(np.int64)
        low, high = (int(n) for n in distribution.ppf([0.001, 0.999]))
        counts = [np.sum(x <= low)] + [np.sum(x == n) for n in range(low + 1, high)] + [np.sum(x >= high)]
        parts = [distribution.cdf(low)] + [distribution.pmf(n) for n in range(low + 1, high)]
        parts.append(1 - sum(parts))
        # Cells of few are put together with their neighbours.
        observed, expected = [0.0], [0.0]
        for count, part in zip(counts, parts):
            if expected[-1] >= 10:
                observed.append(0.0), expected.append(0.0)
            observed[-1] += count
            expected[-1] += part * COUNT
        if expected[-1] < 10 and len(expected) > 1:
            observed[-2] += observed.pop()
            expected[-2] += expected.pop()
        yield "1 - p of the law", 1 - stats.chisquare(observed, expected).pvalue, 1 - IMPROBABLE

    return check


def bits(case):
    from scipy import stats

    x = case.results["x"]
    width = x.dtype.itemsize * 8
    ones = sum(int(np.sum((x >> x.dtype.type(bit)) & x.dtype.type(1))) for bit in range(width))
    p = stats.binomtest(ones, width * COUNT, 0.5).pvalue
    yield "1 - p of as many ones as zeros", 1 - p, 1 - IMPROBABLE
    counts = np.bincount((x >> x.dtype.type(width - 8)).astype(np.int64), minlength=256)
    yield "1 - p of the upper bytes", 1 - stats.chisquare(counts).pvalue, 1 - IMPROBABLE


def cases(xp, random, rounds):
    from scipy import stats

    laws = [
        ("uniform", ["f32", "f64"], lambda p, q: stats.uniform()),
        ("normal", ["f32", "f64"], lambda p, q: stats.norm(p, q)),
        ("log_normal", ["f32", "f64"], lambda p, q: stats.lognorm(q, scale=np.exp(p))),
        ("exponential", ["f32", "f64"], lambda p, q: stats.expon(scale=1 / p)),
        ("cauchy", ["f32", "f64"], lambda p, q: stats.cauchy(p, q)),
        ("gamma", ["f32", "f64"], lambda p, q: stats.gamma(p, scale=q)),
        ("beta", ["f32", "f64"], lambda p, q: stats.beta(p, q)),
        ("poisson", ["u32"], lambda p, q: stats.poisson(p)),
        ("binomial", ["u32"], lambda p, q: stats.binom(int(p), q)),
        ("discrete", ["u32"], lambda p, q: stats.rv_discrete(values=(range(7), WEIGHTS / WEIGHTS.sum()))),
        ("bits", ["u32", "u64"], None),
    ]
    for call, dtypes, law in laws:
        for dtype in dtypes:
            for _ in range(rounds):
                seed, subsequence = int(random.integers(1 << 40)), int(random.integers(1 << 10))
                case = Case(xp, random, f"rng.{call}", call, dtype, seed=seed, subsequence=subsequence,
                            offset=2 * int(random.integers(1 << 20)))
                p, q = random.uniform(0.5, 3), random.uniform(0.5, 2)
                if call == "poisson":
                    p = float(random.choice([0.7, 5, 60, 900]))
                if call == "binomial":
                    p, q = float(random.choice([1, 12, 300])), random.uniform(0.05, 0.95)
                if call == "discrete":
                    case.arguments["weights"] = WEIGHTS.tolist()
                case.arguments.update(p=[p, 0.0], q=[q, 0.0])
                case.add("x", np.zeros(COUNT), dtype)
                if law is None:
                    case.checks.append(bits)
                else:
                    case.checks.append((discrete if dtype == "u32" else continuous)(law(p, q)))
                yield case
