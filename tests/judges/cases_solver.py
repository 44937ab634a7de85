"""Factorisations, systems, eigenvalues and singular values: residuals, and values by NumPy's or CuPy's linalg."""

import numpy as np

from case import EPSILON, NUMBERS, Case, real_of
from dense import TRANSPOSES, half, op, real_diagonal, triangle, whole

NOT_JUDGED = {}


def order(random):
    return int(random.choice([1, 2, 5, 16, 33, 64]))


def square(case, n):
    return case.numbers(n * n).reshape(n, n)


def definite(case, n):
    """Hermitian positive definite, and well conditioned."""
    a = square(case, n)
    return a @ a.conj().T + n * np.eye(n)


def symmetric(case, n, hermitian):
    a = square(case, n)
    return a + (a.conj().T if hermitian else a.T) + n * np.eye(n)


def close(case, what, value, wanted, n, condition=1):
    """The largest difference, relative to the largest element."""
    wanted = case.xp.asarray(wanted)
    scale = max(1.0, float(abs(wanted).max())) if wanted.size else 1.0
    error = float(abs(value - wanted).max()) / scale if wanted.size else 0.0
    return what, error, 30 * (n + 2) * EPSILON[case.dtype] * condition


def unitary(case, what, q, condition=1):
    columns = q.shape[1]
    return close(case, what + " is unitary", q.conj().T @ q, case.xp.eye(columns), len(q), condition)


def other_half(case, uplo, before):
    """What was stored in the half that is nobody's."""
    n = before.shape[0]
    mask = ~half(case.xp, n, uplo)
    changed = (case.result("a") != before) & mask
    return "elements of the other half that changed", int(changed.sum()), 0


# ---- linear systems


def potrf(c, n):
    uplo = c.choose("uplo", ["lower", "upper"])
    c.matrix("a", n, n, definite(c, n))
    real_diagonal(c, "a")
    a = c.get("a")
    wanted = whole(c.xp, a, uplo, True)

    def check(case):
        factor = triangle(case.xp, case.result("a"), uplo, "stored")
        product = factor @ factor.conj().T if uplo == "lower" else factor.conj().T @ factor
        yield close(case, "the product of the factors", product, wanted, n)
        yield other_half(case, uplo, a)

    c.checks.append(check)


def potrs(c, n):
    uplo = c.choose("uplo", ["lower", "upper"])
    c.matrix("a", n, n, definite(c, n)), c.matrix("b", n, 3)
    a, b = whole(c.xp, c.get("a"), uplo, True), c.get("b")
    c.checks.append(lambda case: [close(case, "A X - B", a @ case.result("b"), b, n)])


def potri(c, n):
    uplo = c.choose("uplo", ["lower", "upper"])
    c.matrix("a", n, n, definite(c, n))
    a = whole(c.xp, c.get("a"), uplo, True)
    c.checks.append(lambda case: [close(case, "A times the inverse", a @ whole(case.xp, case.result("a"), uplo, True),
                                        case.xp.eye(n), n)])


def trtri(c, n):
    uplo, diagonal = c.choose("uplo", ["lower", "upper"]), c.choose("diagonal", ["stored", "unit"])
    values = square(c, n) * 0.5 / n
    np.fill_diagonal(values, 2)
    c.matrix("a", n, n, values)
    a = triangle(c.xp, c.get("a"), uplo, diagonal)
    c.checks.append(lambda case: [
        close(case, "A times the inverse", a @ triangle(case.xp, case.result("a"), uplo, diagonal), case.xp.eye(n), n)])


def lauum(c, n):
    uplo = c.choose("uplo", ["lower", "upper"])
    values = square(c, n)
    np.fill_diagonal(values, 1)
    c.matrix("a", n, n, values)
    a = triangle(c.xp, c.get("a"), uplo, "stored")
    wanted = a.conj().T @ a if uplo == "lower" else a @ a.conj().T
    mask = half(c.xp, n, uplo)
    c.checks.append(lambda case: [close(case, "the product", case.xp.where(mask, case.result("a"), 0),
                                        case.xp.where(mask, wanted, 0), n)])


def getrf(c, n):
    m = order(c.random)
    c.matrix("a", m, n), c.add("pivots", np.zeros(min(m, n)), "i64")
    wanted = c.get("a")

    def check(case):
        factors, permuted, k = case.result("a"), wanted.copy(), min(m, n)
        for row, pivot in enumerate(case.results["pivots"] - 1):
            permuted[[row, int(pivot)]] = permuted[[int(pivot), row]]
        lower = case.xp.tril(factors[:, :k], -1) + case.xp.eye(m, k)
        yield close(case, "L U - P A", lower @ case.xp.triu(factors[:k]), permuted, n)
        yield "a multiplier above 1", float(abs(lower).max()) - 1, 0.5  # |Re| + |Im| decides of complex ones

    c.checks.append(check)


def getrs(c, n):
    t = c.choose("transpose", TRANSPOSES)
    c.matrix("a", n, n, square(c, n) + n * np.eye(n)), c.matrix("b", n, 3), c.add("pivots", np.zeros(n), "i64")
    a, b = op(c.get("a"), t), c.get("b")
    c.checks.append(lambda case: [close(case, "op(A) X - B", a @ case.result("b"), b, n)])


def laswp(c, n):
    m = order(c.random)
    c.arguments.update(first=1, last=m)
    c.matrix("a", m, n), c.add("pivots", c.random.integers(1, m + 1, m), "i64")
    a = c.get("a").copy()
    for row, pivot in enumerate(c.arrays["pivots"][0] - 1):
        a[[row, int(pivot)]] = a[[int(pivot), row]]
    c.expect("a", a)


def sytrs(c, n):
    uplo = c.choose("uplo", ["lower", "upper"])
    c.matrix("a", n, n, symmetric(c, n, False)), c.matrix("b", n, 3), c.add("pivots", np.zeros(n), "i64")
    a, b = whole(c.xp, c.get("a"), uplo, False), c.get("b")
    c.checks.append(lambda case: [close(case, "A X - B", a @ case.result("b"), b, n, 10)])


def sytri(c, n):
    uplo = c.choose("uplo", ["lower", "upper"])
    c.matrix("a", n, n, symmetric(c, n, False)), c.add("pivots", np.zeros(n), "i64")
    a = whole(c.xp, c.get("a"), uplo, False)
    c.checks.append(lambda case: [close(case, "A times the inverse", a @ whole(case.xp, case.result("a"), uplo, False),
                                        case.xp.eye(n), n, 10)])


def gesv(c, n):
    c.matrix("a", n, n, square(c, n) + n * np.eye(n)), c.matrix("b", n, 3), c.matrix("x", n, 3)
    a, b = c.get("a"), c.get("b")
    c.checks.append(lambda case: [close(case, "A X - B", a @ case.result("x"), b, n)])


def gels(c, n):
    m = n + int(c.random.choice([0, 3, 40]))
    c.matrix("a", m, n, c.numbers(m * n).reshape(m, n) + n * np.eye(m, n)), c.matrix("b", m, 2), c.matrix("x", n, 2)
    a, b = c.get("a"), c.get("b")
    wanted = c.xp.linalg.lstsq(a, b, rcond=None)[0]
    c.checks.append(lambda case: [close(case, "X", case.result("x"), wanted, m, 4)])


# ---- orthogonal factors


def tall(c, n):
    m = n + int(c.random.choice([0, 1, 30]))
    c.matrix("a", m, n), c.add("tau", np.zeros(n))
    return m, c.get("a")


def geqrf(c, n):
    m, a = tall(c, n)
    wanted = a.conj().T @ a

    def check(case):
        r = case.xp.triu(case.result("a")[:n])
        yield close(case, "R^H R - A^H A", r.conj().T @ r, wanted, m, 2)

    c.checks.append(check)


def orgqr(c, n):
    m, a = tall(c, n)

    def check(case):
        q = case.result("a")
        yield unitary(case, "Q", q)
        r = q.conj().T @ a
        yield close(case, "Q R - A", q @ r, a, m)
        yield close(case, "R below its diagonal", case.xp.tril(r, -1), case.xp.zeros((n, n)), m)

    c.checks.append(check)


def ormqr(c, n):
    m, a = tall(c, n)
    side, t = c.choose("side", ["left", "right"]), c.choose("transpose", ["no", "conjugate"])
    c.matrix("c", *((m, 4) if side == "left" else (4, m)))
    before = c.get("c")

    def check(case):
        factors, tau = case.result("a"), case.xp.asarray(case.results["tau"])
        q = case.xp.eye(m, dtype=before.dtype)
        for i in range(n):  # Q = H_1 H_2 …, H_i = I - tau_i v v^H
            v = case.xp.concatenate([case.xp.zeros(i), case.xp.ones(1), factors[i + 1 :, i]])
            q = q - tau[i] * case.xp.outer(q @ v, v.conj())
        yield close(case, "Q^H A below its diagonal", case.xp.tril(q.conj().T @ a, -1), case.xp.zeros((m, n)), m)
        q = op(q, t)
        yield close(case, "op(Q) C", case.result("c"), q @ before if side == "left" else before @ q, m)

    c.checks.append(check)


def larft(c, n):
    m, a = tall(c, n)
    c.matrix("t", n, n)

    def check(case):
        v = case.xp.tril(case.result("a"), -1) + case.xp.eye(m, n)
        t = case.xp.triu(case.result("t"))
        q = case.xp.eye(m) - v @ t @ v.conj().T
        yield unitary(case, "the block of reflectors", q)
        r = q.conj().T @ a
        yield close(case, "R below its diagonal", case.xp.tril(r, -1), case.xp.zeros((m, n)), m)

    c.checks.append(check)


def tridiagonal(xp, d, e):
    n = len(d)
    return xp.diag(d) + xp.diag(e[: n - 1], 1) + xp.diag(e[: n - 1], -1)


def orgtr(c, n):
    uplo = c.choose("uplo", ["lower", "upper"])
    c.matrix("a", n, n, symmetric(c, n, True))
    real_diagonal(c, "a")
    a = whole(c.xp, c.get("a"), uplo, True)
    for name, count, dtype in (("d", n, real_of(c.dtype)), ("e", n - 1, real_of(c.dtype)), ("tau", n - 1, c.dtype)):
        c.add(name, np.zeros(max(1, count)), dtype)
    if c.call == "ormtr":
        c.matrix("c", n, n, np.eye(n))

    def check(case):
        q = case.result("c" if case.call == "ormtr" else "a")
        yield unitary(case, "Q", q)
        t = tridiagonal(case.xp, case.result("d"), case.result("e"))
        yield close(case, "Q T Q^H - A", q @ t @ q.conj().T, a, n)

    c.checks.append(check)


def gebrd(c, n):
    m, a = tall(c, n)
    del c.arrays["tau"]
    real = real_of(c.dtype)
    for name, count, dtype in (("d", n, real), ("e", n - 1, real), ("tau_q", n, c.dtype), ("tau_p", n, c.dtype)):
        c.add(name, np.zeros(max(1, count)), dtype)
    wanted = c.xp.linalg.svd(a, compute_uv=False)

    def check(case):
        d, e = case.result("d"), case.result("e")
        b = case.xp.diag(d) + case.xp.diag(e[: n - 1], 1)
        yield close(case, "singular values of B", case.xp.linalg.svd(b, compute_uv=False), wanted, m)
        if case.call == "orgbr":
            q = case.result("a")
            yield unitary(case, "Q", q)
            # Q^H A = B P^H, whose rows are as long as those of B
            rows = q.conj().T @ a
            yield close(case, "Q^H A (Q^H A)^H - B B^H", rows @ rows.conj().T, b @ b.T, m, 2)

    c.checks.append(check)


# ---- eigenvalues


def hermitian_problem(c, n, batch=1):
    c.choose("uplo", ["lower", "upper"])
    c.matrix("a", n, n * batch, np.concatenate([symmetric(c, n, True) for _ in range(batch)], axis=1))
    view = c.view("a", c.arrays["a"][0])
    for j in range(n * batch):
        view[j % n, j] = view[j % n, j].real
    c.add("w", np.zeros(n * batch), real_of(c.dtype))


def pairs(case, a, w, v, wanted, n, b=None):
    yield close(case, "eigenvalues", w, wanted, n)
    image = v if b is None else b @ v
    yield close(case, "A V - V W", a @ v, image * w[None, :], n, 4)
    yield close(case, "vectors are orthonormal", v.conj().T @ image, case.xp.eye(v.shape[1]), n, 4)


def syevd(c, n):
    hermitian_problem(c, n)
    a = whole(c.xp, c.get("a"), c.arguments["uplo"], True)
    wanted, b, count = c.xp.linalg.eigvalsh(a), None, n
    if c.call.startswith("sygv"):
        c.matrix("b", n, n, definite(c, n) / n)
        real_diagonal(c, "b")
        b = whole(c.xp, c.get("b"), c.arguments["uplo"], True)
        inverse = c.xp.linalg.inv(c.xp.linalg.cholesky(b))
        wanted = c.xp.linalg.eigvalsh(inverse @ a @ inverse.conj().T)
    if c.call.endswith("dx"):
        first = int(c.random.integers(1, n + 1))
        last = int(c.random.integers(first, n + 1))
        c.arguments.update(first=first, last=last)
        wanted, count = wanted[first - 1 : last], last - first + 1
    c.checks.append(lambda case: pairs(case, a, case.result("w")[:count], case.result("a")[:, :count], wanted, n, b))


def geev(c, n):
    complex_type = {"f32": "c64", "f64": "c128"}.get(c.dtype, c.dtype)
    c.matrix("a", n, n), c.add("w", np.zeros(n), complex_type)
    a = c.get("a")
    trace, second = c.xp.trace(a), c.xp.trace(a @ a)

    def check(case):
        w = case.result("w")
        yield close(case, "their sum", w.sum().reshape(1), trace.reshape(1), n, 4)
        yield close(case, "the sum of squares", (w * w).sum().reshape(1), second.reshape(1), n, 4 * n)
        # A - w I is singular.
        for value in w[: min(n, 5)]:
            smallest = case.xp.linalg.svd(a - value * case.xp.eye(n), compute_uv=False)[-1]
            yield "the smallest singular value of A - w I", float(smallest), 100 * n * EPSILON[case.dtype] * n

    c.checks.append(check)


# ---- singular values


def decomposition(case, a, s, u, v, wanted, m, condition=1):
    yield close(case, "singular values", s, wanted[: len(s)], m, condition)
    yield unitary(case, "U", u, condition)
    yield unitary(case, "V", v, condition)
    yield close(case, "A V - U S", a @ v, u * s[None, :], m, 4 * condition)


def gesvd(c, n):
    m = n + int(c.random.choice([0, 1, 20]))
    c.matrix("a", m, n), c.add("s", np.zeros(n), real_of(c.dtype)), c.matrix("u", m, n)
    name = "vt" if c.call == "gesvd" else "v"
    c.matrix(name, n, n)
    a = c.get("a")
    wanted = c.xp.linalg.svd(a, compute_uv=False)

    def check(case):
        v = case.result(name)
        v = v.conj().T if name == "vt" else v
        return decomposition(case, a, case.result("s"), case.result("u"), v, wanted, m)

    c.checks.append(check)


def gesvdr(c, n):
    """Of a matrix whose rank is what is asked for."""
    n = max(n, 5)
    m, rank = n + 7, 2
    c.arguments["rank"] = rank
    left, right = c.numbers(m * rank).reshape(m, rank), c.numbers(rank * n).reshape(rank, n)
    c.matrix("a", m, n, left @ right), c.add("s", np.zeros(rank), real_of(c.dtype))
    c.matrix("u", m, rank), c.matrix("v", n, rank)
    a = c.get("a")
    wanted = c.xp.linalg.svd(a, compute_uv=False)
    # In f32 power iterations lose digits: see docs/libraries.md.
    condition = 20 if real_of(c.dtype) == "f64" else 200
    c.checks.append(lambda case: decomposition(case, a, case.result("s"), case.result("u"), case.result("v"), wanted, m,
                                               condition))


# ---- batches


def potrs_batched(c, n):
    batch, uplo = 3, c.choose("uplo", ["lower", "upper"])
    c.matrices("a", batch, n, n, [definite(c, n) for _ in range(batch)]), c.matrices("b", batch, n, 1)
    c.add("info", [-1] * batch, "i32")
    a = [whole(c.xp, c.get("a", i), uplo, True) for i in range(batch)]
    b = [c.get("b", i) for i in range(batch)]
    c.expect("info", 0)
    c.checks.append(lambda case: [close(case, "A X - B", a[i] @ case.result("b", i), b[i], n) for i in range(batch)])


def syev_batched(c, n):
    n, batch = min(n, 32), 3
    c.arguments["batch"] = batch
    hermitian_problem(c, n, batch)
    c.add("info", [-1] * batch, "i32")
    c.expect("info", 0)
    parts = [whole(c.xp, c.get("a")[:, i * n : (i + 1) * n], c.arguments["uplo"], True) for i in range(batch)]

    def check(case):
        for i, a in enumerate(parts):
            columns = slice(i * n, (i + 1) * n)
            yield from pairs(case, a, case.result("w")[columns], case.result("a")[:, columns],
                             case.xp.linalg.eigvalsh(a), n)

    c.checks.append(check)


def gesvd_batched(c, n):
    """gesvdj makes all of U, of at most 32 rows; gesvda the first columns."""
    n, batch, jacobi = min(n, 16), 3, c.call == "gesvdj_batched"
    m, rank = n + int(c.random.choice([0, 1, 16])), n if jacobi else max(1, n // 2)
    wide = m if jacobi else rank
    c.arguments.update(batch=batch, rank=rank)
    c.matrix("a", m, n * batch), c.add("s", np.zeros(rank * batch), real_of(c.dtype))
    c.matrix("u", m, wide * batch), c.matrix("v", n, rank * batch), c.add("info", [-1] * batch, "i32")
    c.expect("info", 0)
    parts = [c.get("a")[:, i * n : (i + 1) * n] for i in range(batch)]

    def check(case):
        for i, a in enumerate(parts):
            u = case.result("u")[:, i * wide : (i + 1) * wide]
            yield unitary(case, "all of U", u, 1 if jacobi else 100)
            v = case.result("v")[:, i * rank : (i + 1) * rank]
            wanted = case.xp.linalg.svd(a, compute_uv=False)
            # By way of A^H A, gesvda loses half of the digits of the small ones.
            yield from decomposition(case, a, case.result("s")[i * rank : (i + 1) * rank], u[:, :rank], v, wanted, m,
                                     1 if jacobi else 100)

    c.checks.append(check)


#: operation: calls that judge it. A chain of calls judges each of its operations.
CALLS = {
    "potrf": [("potrf", potrf)], "potrs": [("potrs", potrs)], "potri": [("potri", potri)], "trtri": [("trtri", trtri)],
    "lauum": [("lauum", lauum)], "getrf": [("getrf", getrf)], "getrs": [("getrs", getrs)], "laswp": [("laswp", laswp)],
    "sytrf": [("sytrs", sytrs)], "sytrs": [("sytrs", sytrs)], "sytri": [("sytri", sytri)], "gesv": [("gesv", gesv)],
    "gels": [("gels", gels)], "geqrf": [("geqrf", geqrf)], "orgqr": [("orgqr", orgqr)], "ormqr": [("ormqr", ormqr)],
    "larft": [("larft", larft)], "sytrd": [("orgtr", orgtr)], "orgtr": [("orgtr", orgtr)], "ormtr": [("ormtr", orgtr)],
    "gebrd": [("gebrd", gebrd)], "orgbr": [("orgbr", gebrd)],
    "syevd": [("syevd", syevd)], "syevj": [("syevj", syevd)], "syevdx": [("syevdx", syevd)],
    "sygvd": [("sygvd", syevd)], "sygvj": [("sygvj", syevd)], "sygvdx": [("sygvdx", syevd)], "geev": [("geev", geev)],
    "gesvd": [("gesvd", gesvd)], "gesvdj": [("gesvdj", gesvd)], "gesvdp": [("gesvdp", gesvd)],
    "gesvdr": [("gesvdr", gesvdr)],
    "potrf_batched": [("potrs_batched", potrs_batched)], "potrs_batched": [("potrs_batched", potrs_batched)],
    "syev_batched": [("syev_batched", syev_batched)], "syevj_batched": [("syevj_batched", syev_batched)],
    "gesvdj_batched": [("gesvdj_batched", gesvd_batched)], "gesvda_batched": [("gesvda_batched", gesvd_batched)],
}


#: what iterates, and refuses a matrix with an element that is not finite
ITERATING = [syevd, geev, gesvd, gesvdr, gesv, gels]


def spoiled(c):
    """The same case with an element that is not finite, which the call reads."""
    view = c.view("a", c.arrays["a"][0])
    i, j = (int(c.random.integers(extent)) for extent in view.shape)
    if "uplo" in c.arguments:
        i, j = (max(i, j), min(i, j)) if c.arguments["uplo"] == "lower" else (min(i, j), max(i, j))
    # Cholesky takes an infinite pivot for one.
    view[i, j] = np.nan if c.call == "potrf" else c.random.choice([np.nan, np.inf, -np.inf])
    c.refused = "numeric"
    return c


def cases(xp, random, rounds):
    for operation, calls in CALLS.items():
        for call, make in calls:
            for dtype in NUMBERS:
                for _ in range(rounds):
                    case = Case(xp, random, f"solver.{operation}", call, dtype)
                    make(case, order(random))
                    yield case
                if make in ITERATING or call == "potrf":
                    case = Case(xp, random, f"solver.{operation}", call, dtype)
                    make(case, order(random))
                    yield spoiled(case)
