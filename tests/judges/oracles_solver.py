"""Factorisations, systems, eigenvalues and singular values: residuals, and values by NumPy's or CuPy's linalg."""

import numpy as np

from case import is_complex
from command import matrix, vector
from dense import exchanged, half, op, product_of_factors, triangle, whole

NOT_JUDGED = {}


def close(c, what, value, wanted, n, condition=1):
    """The largest difference, relative to the largest element."""
    scale = max(1.0, float(abs(wanted).max())) if wanted.size else 1.0
    error = float(abs(value - wanted).max()) / scale if wanted.size else 0.0
    c.demand(what, error, 30 * (n + 2) * c.epsilon() * condition)


def unitary(c, what, q, condition=1):
    close(c, what + " is unitary", q.conj().T @ q, c.xp.eye(q.shape[1]), len(q), condition)


def succeeds(c):
    """What tells how a call went says that it went well: in the first word of its cell."""
    for name in ("info", "told"):
        if c.has(name):
            c.demand("info", c.stored(name, "i32", after=True)[0], 0)
            c.may_change(name)


def square(c, rows=None, columns=None):
    return matrix(rows or c.n, columns or c.n, c.lda)


def changes_half(c, a):
    """Nothing changes beside the half of `a` that is stored."""
    c.expect("a", a, c.after("a", a), where=half(c.xp, c.n, c.uplo))


def definite_of(c, factors):
    """L L^H or U^H U of the half that is stored."""
    factor = triangle(c.xp, factors, c.uplo, "stored")
    return factor @ factor.conj().T if c.uplo == "lower" else factor.conj().T @ factor


# ---- linear systems


def potrf(c):
    a = square(c)
    wanted = whole(c.xp, c.get("a", a), c.uplo, True)
    close(c, "the product of the factors", definite_of(c, c.after("a", a)), wanted, c.n)
    changes_half(c, a), succeeds(c)


def potrs(c):
    into = matrix(c.n, c.nrhs, c.ldb)
    close(c, "A X - B", definite_of(c, c.get("a", square(c))) @ c.after("b", into), c.get("b", into), c.n)
    c.expect("b", into, c.after("b", into))


def potri(c):
    a = square(c)
    inverse = whole(c.xp, c.after("a", a), c.uplo, True)
    close(c, "A times the inverse", definite_of(c, c.get("a", a)) @ inverse, c.xp.eye(c.n), c.n)
    changes_half(c, a), succeeds(c)


def trtri(c):
    a = square(c)
    before, after = (triangle(c.xp, of_a, c.uplo, c.diagonal) for of_a in (c.get("a", a), c.after("a", a)))
    scale = max(1.0, float(abs(after).max()))
    close(c, "A times the inverse", before @ after / scale, c.xp.eye(c.n) / scale, c.n)
    changes_half(c, a), succeeds(c)


def lauum(c):
    a = square(c)
    factor = triangle(c.xp, c.get("a", a), c.uplo, "stored")
    product = factor.conj().T @ factor if c.uplo == "lower" else factor @ factor.conj().T
    c.expect("a", a, product, 16 * c.n, half(c.xp, c.n, c.uplo))


def pivots_of(c, count, after=False):
    return c.stored("pivots", "i64", after)[:count] - 1 if c.has("pivots") else np.arange(count)


def getrf(c):
    a = square(c, c.m)
    product, lower = product_of_factors(c.xp, c.after("a", a), pivots_of(c, min(c.m, c.n), after=True))
    close(c, "P L U - A", product, c.get("a", a), c.n)
    if c.has("pivots"):
        c.demand("a multiplier above 1", float(abs(lower).max()) - 1, 0.5)  # |Re| + |Im| decides of complex ones
    c.expect("a", a, c.after("a", a)), c.may_change("pivots"), succeeds(c)


def getrs(c):
    a, _ = product_of_factors(c.xp, c.get("a", square(c)), pivots_of(c, c.n))
    into = matrix(c.n, c.nrhs, c.ldb)
    x = c.after("b", into)
    scale = max(1.0, float(abs(x).max()))
    close(c, "op(A) X - B", op(a, c.transpose) @ x / scale, c.get("b", into) / scale, c.n)
    c.expect("b", into, x)


def laswp(c):
    a = square(c, c.m)
    pivots = c.stored("pivots", "i64")[c.first - 1 : c.last] - 1
    c.expect("a", a, exchanged(c.get("a", a).copy(), pivots, c.first - 1, c.order == "backward"))


def symmetric_of_factors(c, factors, pivots):
    """L D L^T or U D U^T by the factors of Bunch and Kaufman; https://www.netlib.org/lapack, dsytf2. Each step of the
    factorisation is undone, the last one first: a multiplies by a column or two of the factor, then exchanges."""
    xp, n, lower = c.xp, c.n, c.uplo == "lower"
    product = xp.zeros((n, n), factors.dtype)
    steps, k = [], 0 if lower else n - 1
    while 0 <= k < n:
        wide = 2 if pivots[k] < 0 else 1
        block = [k + i if lower else k - wide + 1 + i for i in range(wide)]
        steps.append((block, abs(int(pivots[k])) - 1))
        k += wide if lower else -wide
    for block, pivot in reversed(steps):
        first, last = block[0], block[-1]
        rest = slice(last + 1, n) if lower else slice(0, first)
        part = factors[first : last + 1, first : last + 1]
        d = whole(xp, part, c.uplo, False)
        columns = factors[rest, first : last + 1]
        product[first : last + 1, first : last + 1] = d
        product[rest, first : last + 1] = columns @ d
        product[first : last + 1, rest] = (columns @ d).T
        product[rest, rest] += columns @ d @ columns.T
        row = last if lower else first
        if pivot != row:
            product[[row, pivot]] = product[[pivot, row]]
            product[:, [row, pivot]] = product[:, [pivot, row]]
    return product


def sytrf(c):
    a = square(c)
    pivots = c.stored("pivots", "i64", after=True)
    product = symmetric_of_factors(c, c.after("a", a), np.where(pivots == 0, 1, pivots))
    close(c, "the product of the factors", product, whole(c.xp, c.get("a", a), c.uplo, False), c.n, 10)
    changes_half(c, a), c.may_change("pivots"), succeeds(c)


def sytrs(c):
    a, into = symmetric_of_factors(c, c.get("a", square(c)), c.stored("pivots", "i64")), matrix(c.n, c.nrhs, c.ldb)
    x = c.after("b", into)
    scale = max(1.0, float(abs(x).max()))
    close(c, "A X - B", a @ x / scale, c.get("b", into) / scale, c.n, 10)
    c.expect("b", into, x)


def sytri(c):
    a = square(c)
    before = symmetric_of_factors(c, c.get("a", a), c.stored("pivots", "i64"))
    inverse = whole(c.xp, c.after("a", a), c.uplo, False)
    scale = max(1.0, float(abs(inverse).max()))
    close(c, "A times the inverse", before @ inverse / scale, c.xp.eye(c.n) / scale, c.n, 10)
    changes_half(c, a), succeeds(c)


def gesv(c):
    a, b = c.get("a", square(c)), c.get("b", matrix(c.n, c.nrhs, c.ldb))
    x = matrix(c.n, c.nrhs, c.ldx)
    close(c, "A X - B", a @ c.after("x", x), b, c.n)
    c.expect("x", x, c.after("x", x)), c.may_change("a"), succeeds(c)


def gels(c):
    a, b = c.get("a", square(c, c.m)), c.get("b", matrix(c.m, c.nrhs, c.ldb))
    x = matrix(c.n, c.nrhs, c.ldx)
    close(c, "X", c.after("x", x), c.xp.linalg.lstsq(a, b, rcond=None)[0], c.m, 4)
    c.expect("x", x, c.after("x", x)), c.may_change("a"), succeeds(c)


# ---- orthogonal factors


def reflected(xp, vectors, taus):
    """H_1 H_2 …, H_i = I - tau_i v_i v_i^H"""
    q = xp.eye(len(vectors[0]), dtype=vectors[0].dtype)
    for v, tau in zip(vectors, taus):
        q = q - tau * xp.outer(q @ v, v.conj())
    return q


def q_of(c, factors, taus):
    """The Q of geqrf's reflectors."""
    m = len(factors)
    vectors = []
    for i in range(len(taus)):
        v = c.xp.array(factors[:, i])
        v[:i], v[i] = 0, 1
        vectors.append(v)
    return reflected(c.xp, vectors, taus) if vectors else c.xp.eye(m)


def geqrf(c):
    a, k = square(c, c.m), min(c.m, c.n)
    factors = c.after("a", a)
    q = q_of(c, factors[:, :k], c.after("tau")[:k])
    unitary(c, "Q", q)
    close(c, "Q R - A", q[:, :k] @ c.xp.triu(factors[:k]), c.get("a", a), c.m)
    c.expect("a", a, factors), c.may_change("tau")


def orgqr(c):
    a = square(c, c.m)
    q = q_of(c, c.get("a", a)[:, : c.k], c.get("tau")[: c.k])
    close(c, "Q", c.after("a", a), q[:, : c.n], c.m)
    c.expect("a", a, c.after("a", a))


def ormqr(c):
    rows = c.m if c.side == "left" else c.n
    q = op(q_of(c, c.get("a", matrix(rows, c.k, c.lda)), c.get("tau")[: c.k]), c.transpose)
    into = matrix(c.m, c.n, c.ldc)
    before, after = c.get("c", into), c.after("c", into)
    close(c, "op(Q) C", after, q @ before if c.side == "left" else before @ q, rows)
    c.expect("c", into, after)


def larft(c):
    v = c.get("v", matrix(c.n, c.k, c.ldv))
    into = matrix(c.k, c.k, c.ldt)
    v, t = c.xp.tril(v, -1) + c.xp.eye(c.n, c.k), c.xp.triu(c.after("t", into))
    close(c, "I - V T V^H", c.xp.eye(c.n) - v @ t @ v.conj().T, q_of(c, v, c.get("tau")[: c.k]), c.n)
    c.may_change("t")


def q_of_tridiagonal(c, factors, taus):
    """The Q of sytrd's reflectors; https://www.netlib.org/lapack, dsytrd."""
    n, vectors = len(factors), []
    for i in range(n - 1):
        v = c.xp.array(factors[:, i if c.uplo == "lower" else i + 1])
        if c.uplo == "lower":
            v[: i + 1], v[i + 1] = 0, 1
        else:
            v[i:], v[i] = 0, 1
        vectors.append(v)
    taus = list(taus[: n - 1])
    if not vectors:
        return c.xp.eye(n)
    return reflected(c.xp, *((vectors, taus) if c.uplo == "lower" else (vectors[::-1], taus[::-1])))


def tridiagonal(xp, d, e):
    n = len(d)
    return xp.diag(d) + xp.diag(e[: n - 1], 1) + xp.diag(e[: n - 1], -1)


def sytrd(c):
    a, real = square(c), c.real_dtype()
    q = q_of_tridiagonal(c, c.after("a", a), c.after("tau"))
    unitary(c, "Q", q)
    t = tridiagonal(c.xp, c.after("d", dtype=real)[: c.n], c.after("e", dtype=real))
    close(c, "Q T Q^H - A", q @ t @ q.conj().T, whole(c.xp, c.get("a", a), c.uplo, True), c.n)
    changes_half(c, a), c.may_change("d", "e", "tau")


def orgtr(c):
    a = square(c)
    close(c, "Q", c.after("a", a), q_of_tridiagonal(c, c.get("a", a), c.get("tau")), c.n)
    c.expect("a", a, c.after("a", a))


def ormtr(c):
    order = c.m if c.side == "left" else c.n
    q = op(q_of_tridiagonal(c, c.get("a", matrix(order, order, c.lda)), c.get("tau")), c.transpose)
    into = matrix(c.m, c.n, c.ldc)
    before, after = c.get("c", into), c.after("c", into)
    close(c, "op(Q) C", after, q @ before if c.side == "left" else before @ q, order)
    c.expect("c", into, after)


def gebrd(c):
    """B is upper bidiagonal, and Q^H A = B P^H: its rows are as long as those of B."""
    a, real = square(c, c.m), c.real_dtype()
    d, e = c.after("d", dtype=real)[: c.n], c.after("e", dtype=real)
    b = c.xp.diag(d) + c.xp.diag(e[: c.n - 1], 1)
    q = q_of(c, c.after("a", a), c.after("tau_q")[: c.n])
    unitary(c, "Q", q)
    rows = q[:, : c.n].conj().T @ c.get("a", a)
    close(c, "Q^H A (Q^H A)^H - B B^H", rows @ rows.conj().T, b @ b.T, c.m, 2)
    values = (c.xp.linalg.svd(of_a, compute_uv=False) for of_a in (b, c.get("a", a)))
    close(c, "singular values of B", *values, c.m)
    c.expect("a", a, c.after("a", a)), c.may_change("d", "e", "tau_q", "tau_p")


def orgbr(c):
    """Q, or P^H; https://www.netlib.org/lapack, zgebrd."""
    a = square(c, c.m)
    before, after = c.get("a", a), c.after("a", a)
    if c.side == "left":
        close(c, "Q", after, q_of(c, before, c.get("tau")[: c.n])[:, : c.n], c.m)
    else:
        vectors = []
        for i in range(c.n - 1):
            v = c.xp.array(before[i].conj())
            v[: i + 1], v[i + 1] = 0, 1
            vectors.append(v)
        p = reflected(c.xp, vectors, c.get("tau")[: c.n - 1]) if vectors else c.xp.eye(c.n)
        close(c, "P^H", after[: c.n], p.conj().T, c.n)
    c.expect("a", a, after)


# ---- eigenvalues


def pairs(c, a, w, v, wanted, b=None, problem="ax_bx"):
    """Of A x = w B x, A B x = w x or B A x = w x. `v`: none where no vectors are asked for."""
    n = len(a)
    close(c, "eigenvalues", w, wanted, n)
    if v is None:
        return
    image = v if b is None else b @ v
    left = {"ax_bx": lambda: a @ v, "abx": lambda: a @ image, "bax": lambda: b @ (a @ v)}[problem]()
    close(c, "A V - V W", left, (image if problem == "ax_bx" else v) * w[None, :], n, 4)
    dual = image if problem != "bax" else c.xp.linalg.solve(b, v)
    close(c, "vectors are orthonormal", v.conj().T @ dual, c.xp.eye(v.shape[1]), n, 4)


def syevd(c):
    """All of them, and those by index; where there is a matrix b, of one of three problems."""
    view, b, count, problem = square(c), None, c.n, c.fields.get("problem", "ax_bx")
    a = whole(c.xp, c.get("a", view), c.uplo, True)
    wanted = c.xp.linalg.eigvalsh(a)
    if c.has("b"):
        b = whole(c.xp, c.get("b", matrix(c.n, c.n, c.ldb)), c.uplo, True)
        factor = c.xp.linalg.cholesky(b)
        inverse = c.xp.linalg.inv(factor)
        like = inverse @ a @ inverse.conj().T if problem == "ax_bx" else factor.conj().T @ a @ factor
        wanted = c.xp.linalg.eigvalsh(like)
    if c.fields.get("range") == "indices":
        wanted, count = wanted[c.first - 1 : c.last], c.last - c.first + 1
    v = c.after("a", view)[:, :count] if c.vectors == "yes" else None
    pairs(c, a, c.after("w", dtype=c.real_dtype())[:count], v, wanted, b, problem)
    c.expect("a", view, c.after("a", view)), c.may_change("b", "w"), succeeds(c)


def geev(c):
    view, n = square(c), c.n
    a, w = c.get("a", view), c.after("w", dtype={"f32": "c64", "f64": "c128"}.get(c.dtype, c.dtype))[:n]
    trace, second = c.xp.trace(a), c.xp.trace(a @ a)
    close(c, "their sum", w.sum().reshape(1), trace.reshape(1), n, 4)
    close(c, "the sum of squares", (w * w).sum().reshape(1), second.reshape(1), n, 4 * n)
    for value in w[: min(n, 5)]:
        smallest = c.xp.linalg.svd(a - value * c.xp.eye(n), compute_uv=False)[-1]
        c.demand("the smallest singular value of A - w I", smallest, 100 * n * c.epsilon() * n)
    if c.has("vr"):
        v = c.after("vr", matrix(n, n, c.ldvr))
        if not is_complex(c.dtype):  # of a pair of complex ones the first, its real part before the imaginary one
            second = (w.imag < 0)[None, :]
            real, imaginary = c.xp.roll(v, 1, axis=1), c.xp.roll(v, -1, axis=1)
            v = c.xp.where(second, real - 1j * v, c.xp.where((w.imag > 0)[None, :], v + 1j * imaginary, v))
        close(c, "A V - V W", a @ v, v * w[None, :], n, 4)
        close(c, "the lengths of the vectors", c.xp.linalg.norm(v, axis=0), c.xp.ones(n), n, 4)
    c.may_change("a", "w", "vr"), succeeds(c)


# ---- singular values


def decomposition(c, a, s, u, v, condition=1):
    """`u`, `v`: none where no vectors are asked for; they may have more columns than there are values."""
    close(c, "singular values", s, c.xp.linalg.svd(a, compute_uv=False)[: len(s)], max(a.shape), condition)
    if u is None:
        return
    unitary(c, "U", u, condition)
    unitary(c, "V", v, condition)
    close(c, "A V - U S", a @ v[:, : len(s)], u[:, : len(s)] * s[None, :], max(a.shape), 4 * condition)


def gesvd(c):
    """By QR iterations: V^H, and either U or what replaces A."""
    a, s, u, v = c.get("a", square(c, c.m)), c.after("s", dtype=c.real_dtype())[: c.n], None, None
    if c.columns_u != "none":
        if c.columns_u == "overwrite":
            u = c.after("a", square(c, c.m))
        else:
            u = c.after("u", matrix(c.m, c.m if c.columns_u == "all" else c.n, c.ldu))
        v = c.after("vt", matrix(c.n, c.n, c.ldvt)).conj().T
    decomposition(c, a, s, u, v)
    c.expect("a", square(c, c.m), c.after("a", square(c, c.m))), c.may_change("s", "u", "vt"), succeeds(c)


def gesvdj(c):
    k, u, v = min(c.m, c.n), None, None
    if c.vectors == "yes":
        full = c.extent == "full"
        u, v = c.after("u", matrix(c.m, c.m if full else k, c.ldu)), c.after("v", matrix(c.n, c.n if full else k, c.ldv))
    decomposition(c, c.get("a", square(c, c.m)), c.after("s", dtype=c.real_dtype())[:k], u, v)
    c.may_change("a", "s", "u", "v"), succeeds(c)


def gesvdr(c):
    """Of a matrix whose rank is what is asked for. In f32 power iterations lose digits: see docs/libraries.md."""
    s = c.after("s", dtype=c.real_dtype())[: c.rank]
    u, v = c.after("u", matrix(c.m, c.rank, c.ldu)), c.after("v", matrix(c.n, c.rank, c.ldv))
    decomposition(c, c.get("a", square(c, c.m)), s, u, v, 20 if c.real_dtype() == "f64" else 200)
    c.may_change("a", "s", "u", "v"), succeeds(c)


# ---- batches


def potrf_batched(c):
    for i in c.listed(0):
        wanted = whole(c.xp, c.get(i, square(c)), c.uplo, True)
        close(c, "the product of the factors", definite_of(c, c.after(i, square(c))), wanted, c.n)
        c.expect(i, square(c), c.after(i, square(c)), where=half(c.xp, c.n, c.uplo))
    c.expect("info", vector(c.batch), 0, dtype="i32")


def potrs_batched(c):
    into = matrix(c.n, 1, c.ldb)
    for a, b in zip(c.listed(0), c.listed(1)):
        of_a = definite_of(c, c.get(a, square(c)))
        close(c, "A X - B", of_a @ c.after(b, into), c.get(b, into), c.n)
        c.expect(b, into, c.after(b, into))


def parts_of(columns, c, name, rows, leading, dtype=None, after=False):
    """The matrices of a batch that stand side by side."""
    whole_batch = (c.after if after else c.get)(name, matrix(rows, columns * c.batch, leading), dtype)
    return [whole_batch[:, i * columns : (i + 1) * columns] for i in range(c.batch)]


def syev_batched(c):
    w = c.after("w", dtype=c.real_dtype())
    before, after = (parts_of(c.n, c, "a", c.n, c.lda, after=after) for after in (False, True))
    for i in range(c.batch):
        a, v = whole(c.xp, before[i], c.uplo, True), after[i] if c.vectors == "yes" else None
        pairs(c, a, w[i * c.n : (i + 1) * c.n], v, c.xp.linalg.eigvalsh(a))
    c.expect("info", vector(c.batch), 0, dtype="i32"), c.may_change("a", "w")


def gesvd_batched(c):
    """gesvdj makes all of U and V; by way of A^H A, gesvda loses half of the digits of the small ones."""
    jacobi = c.operation == "solver.gesvdj_batched"
    rank, condition = (min(c.m, c.n), 1) if jacobi else (c.rank, 100)
    s, of_u, of_v = c.after("s", dtype=c.real_dtype()), [None] * c.batch, [None] * c.batch
    if c.vectors == "yes":
        of_u = parts_of(c.m if jacobi else rank, c, "u", c.m, c.ldu, after=True)
        of_v = parts_of(c.n if jacobi else rank, c, "v", c.n, c.ldv, after=True)
    for i, a in enumerate(parts_of(c.n, c, "a", c.m, c.lda)):
        decomposition(c, a, s[i * rank : (i + 1) * rank], of_u[i], of_v[i], condition)
    c.expect("info", vector(c.batch), 0, dtype="i32"), c.may_change("a", "s", "u", "v")


ORACLES = {one.__name__: one for one in (
    potrf, potrs, potri, trtri, lauum, getrf, getrs, laswp, sytrf, sytrs, sytri, gesv, gels, geqrf, orgqr, ormqr, larft, sytrd,
    orgtr, ormtr, gebrd, orgbr, syevd, geev, gesvd, gesvdj, gesvdr, potrf_batched, potrs_batched, syev_batched)}
ORACLES |= {name: syevd for name in ("syevj", "syevdx", "sygvd", "sygvj", "sygvdx")}
ORACLES |= {"gesvdp": gesvdj, "syevj_batched": syev_batched, "gesvdj_batched": gesvd_batched,
            "gesvda_batched": gesvd_batched}

#: what iterates, and refuses a matrix with an element that is not finite
ITERATING = ("syevd", "syevj", "syevdx", "sygvd", "sygvj", "sygvdx", "geev", "gesvd", "gesvdj", "gesvdp", "gesvdr", "gesv", "gels")
DTYPES = ("f32", "f64", "c64", "c128")
#: Cholesky takes an infinite pivot for one.
UNUSUAL = {name: {dtype: [np.nan, np.inf, -np.inf] for dtype in DTYPES} for name in ITERATING}
UNUSUAL["potrf"] = {dtype: [np.nan] for dtype in DTYPES}


def refuses(c):
    """Whether what the command reads of its matrix, or of the two of A x = w B x, is not finite."""
    read = [c.get("a", square(c, c.fields.get("m")))]
    if c.operation.startswith("solver.sygv"):
        read.append(c.get("b", matrix(c.n, c.n, c.ldb)))
    if "uplo" in c.fields:
        read = [one[half(c.xp, c.n, c.uplo)] for one in read]
    return not all(bool(c.xp.isfinite(one).all()) for one in read)
