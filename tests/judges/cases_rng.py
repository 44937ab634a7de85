"""Random numbers: their laws, by SciPy's tests of distributions (Kolmogorov-Smirnov, chi squared)."""

import numpy as np

from case import Case

NOT_JUDGED = {}
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


def extreme(distribution):
    """Of laws whose numbers are too close to 0, 1 or their mean to tell them apart in the dtype: how many are beyond the
    quartiles, where such are apart from one another, and that each is in the law's range."""

    def check(case):
        from scipy import stats

        x = case.results["x"].astype(np.float64)
        low, high = distribution.support()
        yield "numbers outside of the range", int(np.sum(~((x >= low) & (x <= high)))), 0
        for level in (1e-30, 0.25, 0.5, 0.75):
            p = distribution.cdf(level)
            if 1e-9 < p < 1 - 1e-9:
                yield f"1 - p of numbers up to {level}", 1 - stats.binomtest(int(np.sum(x <= level)), COUNT, p).pvalue, (
                    1 - IMPROBABLE)

    return check


#: gamma and beta with shapes and scales of any size, and shapes for which SciPy computes what cannot be told apart
EXTREMES = [("gamma", 1e-3, 1.0, 1e-3), ("gamma", 1e-300, 2.0, 1e-20), ("gamma", 1e300, 1e-300, 1e300),
            ("beta", 1e-3, 2e-3, 1e-3), ("beta", 1e-310, 3e-310, 1e-20), ("beta", 1e-5, 1.0, 1e-5),
            ("beta", 1e308, 1.5e308, 1e12)]


def extremes(xp, random):
    from scipy import stats

    for call, p, q, shape in EXTREMES:
        for dtype in ("f32", "f64"):
            seed = int(random.integers(1 << 40))
            case = Case(xp, random, f"rng.{call}", call, dtype, seed=seed, subsequence=1, offset=0, p=[p, 0.0], q=[q, 0.0])
            case.add("x", np.full(COUNT, -1.0), dtype)
            law = stats.gamma(shape, scale=q) if call == "gamma" else stats.beta(shape, shape * (q / p))
            case.checks.append(extreme(law))
            yield case


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


def sobol(dimensions):
    """The points of Joe and Kuo's direction numbers, which SciPy has too; dimension by dimension."""

    def check(case):
        from scipy.stats import qmc

        x = case.results["x"]
        points = qmc.Sobol(dimensions, scramble=False, bits=32).random_base2(15)[: x.size // dimensions]
        wanted = np.round(points.T * 2.0**32).astype(x.dtype).reshape(-1) << x.dtype.type(x.itemsize * 8 - 32)
        yield "numbers that are others", int(np.sum(x != wanted)), 0

    return check


def sequences(xp, random, rounds):
    """cuRAND's generators, in pieces if there is one dimension. On hosts MTGP32 and MT19937 take seconds to begin."""
    from scipy import stats

    kinds = [
        ("bits", "u32", lambda p, q: bits, ["xorwow", "philox", "mrg32k3a", "scrambled_sobol32"]),
        ("bits", "u64", lambda p, q: bits, ["scrambled_sobol64"]),
        ("poisson", "u32", lambda p, q: discrete(stats.poisson(p)), ["xorwow", "philox"]),
    ]
    for dtype in ("f32", "f64"):
        pseudo = ["xorwow", "philox"]
        kinds.append(("uniform", dtype, lambda p, q: continuous(stats.uniform()), pseudo))
        kinds.append(("normal", dtype, lambda p, q: continuous(stats.norm(p, q)), pseudo))
        kinds.append(("log_normal", dtype, lambda p, q: continuous(stats.lognorm(q, scale=np.exp(p))), pseudo))
    made = [(*kind[:3], generator, 1) for kind in kinds for generator in kind[3]]
    for dimensions in (1, 5):
        made += [("bits", f"u{n}", lambda p, q, d=dimensions: sobol(d), f"sobol{n}", dimensions) for n in (32, 64)]
    for distribution, dtype, law, generator, dimensions in made:
        for _ in range(rounds):
            seed = 0 if "sobol" in generator else int(random.integers(1 << 40))
            case = Case(xp, random, "rng.sequence", "sequence", dtype, seed=seed, generator=generator,
                        distribution=distribution, dimensions=dimensions, pieces=4 if dimensions == 1 else 1)
            p, q = random.uniform(0.5, 3), random.uniform(0.5, 2)
            if distribution == "poisson":
                p = float(random.choice([0.7, 5, 60, 900]))
            case.arguments.update(p=[p, 0.0], q=[q, 0.0])
            case.add("x", np.zeros(COUNT), dtype)
            case.checks.append(law(p, q))
            yield case


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
    yield from extremes(xp, random)
    yield from sequences(xp, random, rounds)
