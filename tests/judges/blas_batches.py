"""Batches of BLAS's, and the small systems that it solves."""

import numpy as np

from case import EPSILON, weighed
from dense import TRANSPOSES, op, shapes, strong_diagonal, triangle


def expect_list(c, name, values, terms):
    flat = c.flat(name)
    for i, value in enumerate(values):
        c.view(name, flat, i)[...] = value
    c.expect_flat(name, flat, terms)


def gemm_batched(c, n, suffix=""):
    m, k = c.extents(2)
    batch = int(c.random.integers(1, 4))
    ta, tb = (c.choose(f"transpose_{x}{suffix}", TRANSPOSES) for x in "ab")
    alpha, beta = (c.factor(x + suffix, (-1.5, 0.0, 0.5, 1.0)) for x in ("alpha", "beta"))
    names = [x + suffix for x in "abc"]
    c.matrices(names[0], batch, *((m, k) if ta == "no" else (k, m)))
    c.matrices(names[1], batch, *((k, n) if tb == "no" else (n, k)))
    c.matrices(names[2], batch, m, n)
    values = []
    for i in range(batch):
        a, b, old = (c.get(name, i) for name in names)
        values.append(weighed(alpha, op(a, ta) @ op(b, tb)) + weighed(beta, old))
    expect_list(c, names[2], values, k)
    if c.call == "gemm_indexed":
        strides = [c.arrays[name][2]["stride"] for name in names]
        offsets = [stride * i for stride in strides for i in range(batch)]
        c.add("offsets", offsets, "i64")


def gemm_grouped(c, n):
    c.arguments["groups"] = 2
    for suffix in ("0", "1"):
        gemm_batched(c, shapes(c.random, 1)[0], suffix)


def gemv_batched(c, n):
    m, batch = c.extents(1)[0], int(c.random.integers(1, 4))
    t, alpha, beta = c.choose("transpose", TRANSPOSES), c.factor("alpha"), c.factor("beta")
    c.matrices("a", batch, m, n)
    rows, columns = (m, n) if t == "no" else (n, m)
    c.matrices("x", batch, columns, 1), c.matrices("y", batch, rows, 1)
    values = [weighed(alpha, op(c.get("a", i), t) @ c.get("x", i)) + weighed(beta, c.get("y", i))
              for i in range(batch)]
    expect_list(c, "y", values, columns)


def trsm_batched(c, n):
    n, columns, batch = min(n, 33), 5, int(c.random.integers(1, 4))
    uplo, diagonal = c.choose("uplo", ["lower", "upper"]), c.choose("diagonal", ["stored", "unit"])
    t, alpha = c.choose("transpose", TRANSPOSES), c.factor("alpha", (-1.5, 1.0))
    c.arguments["side"] = "left"
    values = [c.numbers(n * n).reshape(n, n) * 0.5 / n for _ in range(batch)]
    for value in values:
        np.fill_diagonal(value, 2)
    c.matrices("a", batch, n, n, values), c.matrices("b", batch, n, columns)
    solutions = [alpha * c.xp.linalg.solve(op(triangle(c.xp, c.get("a", i), uplo, diagonal), t), c.get("b", i))
                 for i in range(batch)]
    expect_list(c, "b", solutions, n)


def small_systems(c, n):
    """Matrices that are far from singular."""
    n, batch = min(n, 32), int(c.random.integers(1, 4))
    c.matrices("a", batch, n, n)
    for i in range(batch):
        strong_diagonal(c, "a", i)
    c.add("info", [-1] * batch, "i32")
    return n, batch


def getrf_batched(c, n):
    n, batch = small_systems(c, n)
    c.add("pivots", [0] * (n * batch), "i32")
    wanted = [c.get("a", i) for i in range(batch)]

    def check(case):
        pivots = case.results["pivots"].reshape(batch, n)
        yield "info", int(np.max(np.abs(case.results["info"]))), 0
        for i in range(batch):
            factors, permuted = case.result("a", i), wanted[i].copy()
            for row, pivot in enumerate(pivots[i] - 1):
                permuted[[row, int(pivot)]] = permuted[[int(pivot), row]]
            lower = triangle(case.xp, factors, "lower", "unit")
            error = abs(lower @ case.xp.triu(factors) - permuted).max()
            yield "L U - P A", float(error), 8 * n * EPSILON[case.dtype] * (2 + n)

    c.checks.append(check)


def lapack_batched(c, n):
    n, batch = small_systems(c, n)
    if c.call == "gels_batched":
        c.matrices("b", batch, n, 3)
        expect_list(c, "b", [c.xp.linalg.solve(c.get("a", i), c.get("b", i)) for i in range(batch)], 4 * n)
        return
    c.matrices("inverse", batch, n, n)
    expect_list(c, "inverse", [c.xp.linalg.inv(c.get("a", i)) for i in range(batch)], 4 * n)
    c.expect("info", 0)
    if c.call == "lapack_batched":
        t = c.choose("transpose", TRANSPOSES)
        c.matrices("b", batch, n, 3), c.add("pivots", [0] * (n * batch), "i32")
        expect_list(c, "b", [c.xp.linalg.solve(op(c.get("a", i), t), c.get("b", i)) for i in range(batch)], 4 * n)
