"""BLAS, by dense products of NumPy's or CuPy's: what must come of each operation's commands."""

import numpy as np

from case import is_complex, weighed
from command import everything, matrix, vector
from dense import from_band, half, op, packed_places, product_of_factors, triangle, unpacked, whole

NOT_JUDGED = {"blas.tune_matmul": "it measures, and computes nothing"}


# ---- level 1


def vectors(c):
    return vector(c.n, c.incx), vector(c.n, c.incy)


def axpy(c):
    x, y = vectors(c)
    c.expect("y", y, weighed(c.factor("alpha"), c.get("x", x)) + c.get("y", y))


def scal(c):
    alpha = c.factor("alpha", c.real_dtype() if c.kind == "real" and is_complex(c.dtype) else None)
    x = vector(c.n, c.incx)
    c.expect("x", x, alpha * c.get("x", x))


def dot(c):
    x, y = (c.get(name, view) for name, view in zip("xy", vectors(c)))
    c.expect("result", everything, c.xp.sum((x.conj() if c.conjugate == "yes" else x) * y), c.n)


def nrm2(c):
    x = c.get("x", vector(c.n, c.incx))
    largest = float(abs(x).max()) if c.n else 0.0
    scale = largest if 0 < largest < np.inf else 1.0  # the square of the largest need not fit
    c.expect("result", everything, scale * c.xp.linalg.norm(x / scale), c.n, dtype=c.real_dtype())


def ones_norm(x):
    return abs(x.real) + abs(x.imag)


def asum(c):
    total = ones_norm(c.get("x", vector(c.n, c.incx))).sum()
    c.expect("result", everything, total, c.n, dtype=c.real_dtype())


def iamax(c):
    find = c.xp.argmax if c.which == "largest" else c.xp.argmin
    c.expect("result", everything, find(ones_norm(c.get("x", vector(c.n, c.incx)))), dtype="i64")


def copy(c):
    x, y = vectors(c)
    c.expect("y", y, c.get("x", x))


def swap(c):
    x, y = vectors(c)
    c.expect("x", x, c.get("y", y)), c.expect("y", y, c.get("x", x))


def rot(c):
    cosine = c.factor("c", c.real_dtype())
    sine = c.factor("s", c.real_dtype() if c.sine == "real" else c.dtype)
    (x, of_x), (y, of_y) = ((view, c.get(name, view)) for name, view in zip("xy", vectors(c)))
    c.expect("x", x, cosine * of_x + sine * of_y, 2), c.expect("y", y, cosine * of_y - np.conj(sine) * of_x, 2)


def rotg(c):
    a, b, r, sine = c.get("a")[0], c.get("b")[0], c.after("a")[0], c.after("s")[0]
    cosine = c.after("c", dtype=c.real_dtype())[0]
    tolerance = 8 * c.epsilon()
    c.demand("rotates a to r", abs(cosine * a + sine * b - r), tolerance * 2)
    c.demand("rotates b to 0", abs(cosine * b - np.conj(sine) * a), tolerance * 2)
    c.demand("is a rotation", abs(cosine**2 + abs(sine) ** 2 - 1), tolerance)
    c.may_change("a", "b", "c", "s")


def modified(param):
    """H of a modified rotation; https://www.netlib.org/blas/srotm.f"""
    h11, h21, h12, h22 = (float(h) for h in param[1:5])
    return {-1: ((h11, h12), (h21, h22)), 0: ((1, h12), (h21, 1)), 1: ((h11, 1), (-1, h22)),
            -2: ((1, 0), (0, 1))}[int(param[0])]


def rotm(c):
    (h11, h12), (h21, h22) = modified(c.get("param"))
    (x, of_x), (y, of_y) = ((view, c.get(name, view)) for name, view in zip("xy", vectors(c)))
    c.expect("x", x, h11 * of_x + h12 * of_y, 2), c.expect("y", y, h21 * of_x + h22 * of_y, 2)


def rotmg(c):
    x, y = c.get("x1")[0], c.get("y1")[0]
    (h11, h12), (h21, h22) = modified(c.after("param"))
    c.demand("y becomes 0", abs(h21 * x + h22 * y), 32 * c.epsilon())
    c.demand("x becomes x1", abs(h11 * x + h12 * y - c.after("x1")[0]), 32 * c.epsilon())
    c.may_change("d1", "d2", "x1", "param")


# ---- level 2


def product_with(c, a, terms):
    """y = alpha a x + beta y"""
    x, y = vector(a.shape[1], c.incx), vector(a.shape[0], c.incy)
    value = weighed(c.factor("alpha"), a @ c.get("x", x)) + weighed(c.factor("beta"), c.get("y", y))
    c.expect("y", y, value, terms)


def gemv(c):
    a = op(c.get("a", matrix(c.m, c.n, c.lda)), c.transpose)
    product_with(c, a, a.shape[1])


def gbmv(c):
    rows = c.kl + c.ku + 1
    band = c.get("a", matrix(rows, c.n, c.lda))
    product_with(c, op(from_band(c.xp, band, c.m, c.n, c.kl, c.ku), c.transpose), rows)


def stored_half(c):
    """A square matrix as it is stored: in full, banded or packed."""
    if c.storage == "packed":
        return unpacked(c.xp, c.flat("a"), c.n, c.uplo)
    if c.storage == "full":
        return c.get("a", matrix(c.n, c.n, c.lda))
    below, above = (c.k, 0) if c.uplo == "lower" else (0, c.k)
    return from_band(c.xp, c.get("a", matrix(c.k + 1, c.n, c.lda)), c.n, c.n, below, above)


def symv(c):
    product_with(c, whole(c.xp, stored_half(c), c.uplo, c.symmetry == "hermitian"), c.n)


def ger(c):
    a, y = matrix(c.m, c.n, c.lda), c.get("y", vector(c.n, c.incy))
    product = c.xp.outer(c.get("x", vector(c.m, c.incx)), y.conj() if c.conjugate == "yes" else y)
    c.expect("a", a, weighed(c.factor("alpha"), product) + c.get("a", a), 2)


def update_half(c, change):
    """A half of a symmetric matrix plus the same of `change`."""
    if c.storage == "packed":
        a, change, where = vector(c.n * (c.n + 1) // 2), change[packed_places(c.xp, c.n, c.uplo)], None
    else:
        a, where = matrix(c.n, c.n, c.lda), half(c.xp, c.n, c.uplo)
    c.expect("a", a, c.get("a", a) + change, 3, where)


def syr(c):
    hermitian = c.symmetry == "hermitian"
    x = c.get("x", vector(c.n, c.incx))
    alpha = c.factor("alpha", c.real_dtype() if hermitian else None)
    update_half(c, weighed(alpha, c.xp.outer(x, x.conj() if hermitian else x)))


def syr2(c):
    alpha, (x, y) = c.factor("alpha"), (c.get(name, view) for name, view in zip("xy", vectors(c)))
    if c.symmetry == "hermitian":
        update_half(c, alpha * c.xp.outer(x, y.conj()) + np.conj(alpha) * c.xp.outer(y, x.conj()))
    else:
        update_half(c, alpha * (c.xp.outer(x, y) + c.xp.outer(y, x)))


def trmv(c):
    x, a = vector(c.n, c.incx), op(triangle(c.xp, stored_half(c), c.uplo, c.diagonal), c.transpose)
    of_x = c.get("x", x)
    c.expect("x", x, c.xp.linalg.solve(a, of_x) if c.task == "solve" else a @ of_x, c.n)


# ---- level 3


def operand_of(c, name, transpose, rows, columns, leading, dtype=None):
    """op(A), rows x columns, of A as it is stored."""
    stored = (rows, columns) if transpose == "no" else (columns, rows)
    return op(c.get(name, matrix(*stored, leading), dtype), transpose)


def gemm(c, eps=None, result=None):
    a = operand_of(c, "a", c.transpose_a, c.m, c.k, c.lda)
    b = operand_of(c, "b", c.transpose_b, c.k, c.n, c.ldb)
    into = matrix(c.m, c.n, c.ldc)
    factors = "i32" if result == "i32" else None
    if result == "i32":
        a, b = a.astype(c.xp.int64), b.astype(c.xp.int64)
    alpha, beta = c.factor("alpha", factors), c.factor("beta", factors)
    value = weighed(alpha, a @ b) + weighed(beta, c.get("c", into, result))
    c.expect("c", into, value, c.k, dtype=result, eps=eps)


def gemm_ex(c):
    gemm(c, eps=2.0**-10 if c.compute == "tf32" else None, result=c.c_dtype)


def symm(c):
    order = c.m if c.side == "left" else c.n
    a = whole(c.xp, c.get("a", matrix(order, order, c.lda)), c.uplo, c.symmetry == "hermitian")
    b, into = c.get("b", matrix(c.m, c.n, c.ldb)), matrix(c.m, c.n, c.ldc)
    value = weighed(c.factor("alpha"), a @ b if c.side == "left" else b @ a)
    c.expect("c", into, value + weighed(c.factor("beta"), c.get("c", into)), order)


def syrk(c):
    hermitian, two = c.symmetry == "hermitian", c.operation == "blas.syr2k"
    dual = (lambda x: x.conj().T) if hermitian else (lambda x: x.T)
    shape = (c.n, c.k) if c.transpose == "no" else (c.k, c.n)

    def factor_of(name, leading):
        stored = c.get(name, matrix(*shape, leading))
        return stored if c.transpose == "no" else dual(stored)

    a = factor_of("a", c.lda)
    b = factor_of("b", c.ldb) if two else a
    alpha = c.factor("alpha", c.real_dtype() if hermitian and not two else None)
    products = weighed(alpha, a @ dual(b))
    if two and c.products == "both":
        products = products + weighed(np.conj(alpha) if hermitian else alpha, b @ dual(a))
    into = matrix(c.n, c.n, c.ldc)
    old = weighed(c.factor("beta", c.real_dtype() if hermitian else None), c.get("c", into))
    c.expect("c", into, products + old, 2 * c.k, half(c.xp, c.n, c.uplo))


def trmm(c):
    order, left = c.m if c.side == "left" else c.n, c.side == "left"
    a = op(triangle(c.xp, c.get("a", matrix(order, order, c.lda)), c.uplo, c.diagonal), c.transpose)
    alpha, into = c.factor("alpha"), matrix(c.m, c.n, c.ldb)
    b = c.get("b", into)
    if c.operation == "blas.trsm":
        x = c.xp.linalg.solve(a, b) if left else c.xp.linalg.solve(a.T, b.T).T
        c.expect("b", into, weighed(alpha, x), order)
    else:
        c.may_change("b")  # it may be c
        c.expect("c", matrix(c.m, c.n, c.ldc), weighed(alpha, a @ b if left else b @ a), order)


def geam(c):
    a = operand_of(c, "a", c.transpose_a, c.m, c.n, c.lda)
    b = operand_of(c, "b", c.transpose_b, c.m, c.n, c.ldb)
    c.expect("c", matrix(c.m, c.n, c.ldc), weighed(c.factor("alpha"), a) + weighed(c.factor("beta"), b), 2)


def dgmm(c):
    x = c.get("x", vector(c.m if c.side == "left" else c.n, c.incx))
    a = c.get("a", matrix(c.m, c.n, c.lda))
    c.expect("c", matrix(c.m, c.n, c.ldc), (x[:, None] if c.side == "left" else x[None, :]) * a)


def tpttr(c):
    value = unpacked(c.xp, c.flat("packed"), c.n, c.uplo)
    c.expect("a", matrix(c.n, c.n, c.lda), value, 1, half(c.xp, c.n, c.uplo))


def trttp(c):
    value = c.get("a", matrix(c.n, c.n, c.lda))[packed_places(c.xp, c.n, c.uplo)]
    c.expect("packed", vector(c.n * (c.n + 1) // 2), value)


# ---- products with types, orders and epilogues


def transform(c):
    def view(name, rows, columns, leading, order, start):
        if order == "column":
            return matrix(rows, columns, leading, start)
        by_row = matrix(columns, rows, leading, start)
        return lambda flat: by_row(flat).T

    integers = c.dtype in ("i8", "i32")
    alpha, beta = (c.factor(name) for name in ("alpha", "beta"))
    for i in range(c.batch):
        total = 0
        for name, by, t in (("a", alpha, c.transpose_a), ("b", beta, c.transpose_b)):
            if c.has(name):
                stored = (c.m, c.n) if t == "no" else (c.n, c.m)
                leading, start = c.fields["ld" + name], i * c.fields["stride_" + name]
                total = total + weighed(by, op(c.get(name, view(name, *stored, leading, c.fields["order_" + name], start)), t))
        if integers:
            total = c.xp.rint(total)
        c.expect("c", view("c", c.m, c.n, c.ldc, c.order_c, i * c.stride_c), total, 2)


def matmul(c):
    """Products of one matrix, column by column, without scales; of f8 hardware adds up in 14 bits or so."""
    if c.batch != 1 or c.tail or "row" in (c.order_a, c.order_b, c.order_c, c.order_d):
        raise NotImplementedError("the catalogue has no such matmul")
    integers, narrow = c.dtype == "i8", c.dtype.startswith("f8")
    a = operand_of(c, "a", c.transpose_a, c.m, c.k, c.lda)
    b = operand_of(c, "b", c.transpose_b, c.k, c.n, c.ldb, c.b_dtype)
    if integers:
        a, b = a.astype(c.xp.int64), b.astype(c.xp.int64)
    factors = c.dtype if is_complex(c.dtype) or c.dtype == "f64" else "i32" if integers else "f32"
    x = weighed(c.factor("alpha", factors), a @ b)
    if c.has("c"):
        x = x + weighed(c.factor("beta", factors), c.get("c", matrix(c.m, c.n, c.ldc), c.c_dtype))
    d, eps = matrix(c.m, c.n, c.ldd), 2.0**-13 if narrow else None
    if c.has("c"):
        c.may_change("c")  # it may be d
    x = with_epilogue(c, x, a, b)
    c.expect("d", d, x, c.k, dtype=c.d_dtype, eps=eps)


ROOT, CUBE = np.sqrt(2 / np.pi), 0.044715


def gelu(xp, x):
    return x * (1 + xp.tanh(ROOT * (x + CUBE * x**3))) / 2


def gelu_slope(xp, x):
    tanh = xp.tanh(ROOT * (x + CUBE * x**3))
    return (1 + tanh) / 2 + x / 2 * (1 - tanh**2) * ROOT * (1 + 3 * CUBE * x**2)


def with_epilogue(c, x, a, b):
    epilogue, xp = c.epilogue, c.xp
    if epilogue in ("bias", "relu_bias", "gelu_bias", "relu_aux_bias", "gelu_aux_bias"):
        x = x + c.get("bias")[: c.m, None]
    bits = matrix(c.m // 8, c.n, c.ld_aux // 8)
    numbers = matrix(c.m, c.n, c.ld_aux)
    if epilogue.startswith("relu_aux"):
        packed = np.packbits(c.host(x >= 0), axis=0, bitorder="little")
        c.expect("aux", bits, xp.array(packed), dtype="u8")
    if epilogue.startswith("relu"):
        x = xp.maximum(x, 0)
    if epilogue.startswith("gelu_aux"):
        c.expect("aux", numbers, x, c.k)
    if epilogue.startswith("gelu"):
        x = gelu(xp, x)
    if epilogue.startswith("drelu"):
        x = x * xp.array(np.unpackbits(np.ascontiguousarray(c.host(c.get("aux", bits, "u8"))), axis=0, bitorder="little"))
    if epilogue.startswith("dgelu"):
        x = x * gelu_slope(xp, c.get("aux", numbers))
    if "bgrad" in epilogue:
        sums = a.sum(axis=1) if epilogue == "bgrad_a" else b.sum(axis=0) if epilogue == "bgrad_b" else x.sum(axis=1)
        c.expect("bias", vector(len(sums)), sums, c.n)
    return x


# ---- batches and lists


def places_of_batch(c, names):
    """Of each matrix of a batch, by name: its operand, and where it begins there."""
    if c.tail:
        return [[(place, 0) for place in places] for places in zip(*(c.listed(tag) for tag in range(len(names))))]
    return [[(name, i * c.fields["stride_" + name]) for name in names] for i in range(c.batch)]


def gemm_at(c, shape, factors, places):
    """C = alpha op(A) op(B) + beta C of matrices (operand, start)"""
    (m, n, k), (ta, tb), (lda, ldb, ldc) = shape
    (a, at_a), (b, at_b), (to, at_c) = places
    of_a = op(c.get(a, matrix(*((m, k) if ta == "no" else (k, m)), lda, at_a)), ta)
    of_b = op(c.get(b, matrix(*((k, n) if tb == "no" else (n, k)), ldb, at_b)), tb)
    into = matrix(m, n, ldc, at_c)
    c.expect(to, into, weighed(factors[0], of_a @ of_b) + weighed(factors[1], c.get(to, into)), k)


def shape_of_gemm(c):
    return (c.m, c.n, c.k), (c.transpose_a, c.transpose_b), (c.lda, c.ldb, c.ldc)


def gemm_batched(c):
    for places in places_of_batch(c, "abc"):
        gemm_at(c, shape_of_gemm(c), (c.factor("alpha"), c.factor("beta")), places)


def gemm_indexed(c):
    offsets = c.stored("offsets", "i64").reshape(3, c.batch)
    for i in range(c.batch):
        places = [(name, int(offsets[j, i])) for j, name in enumerate("abc")]
        gemm_at(c, shape_of_gemm(c), (c.factor("alpha"), c.factor("beta")), places)
    c.expect("outside", everything, 0, dtype="i64")


GROUP = np.dtype([("transpose_a", "u4"), ("transpose_b", "u4"), *((name, "i8") for name in
                  ("m", "n", "k", "lda", "ldb", "ldc", "batch")), ("alpha", "f8"), ("beta", "f8")])


def gemm_grouped(c):
    data = c.noted["data"]
    groups = np.frombuffer(c.contents, GROUP, data["bytes"] // GROUP.itemsize, data["at"])
    lists, transposes = [c.listed(tag) for tag in range(3)], ("no", "yes", "conjugate")
    at = 0
    for g in groups:
        shape = ((int(g["m"]), int(g["n"]), int(g["k"])), (transposes[g["transpose_a"]], transposes[g["transpose_b"]]),
                 (int(g["lda"]), int(g["ldb"]), int(g["ldc"])))
        for _ in range(g["batch"]):
            gemm_at(c, shape, (float(g["alpha"]), float(g["beta"])), [(one[at], 0) for one in lists])
            at += 1


def gemv_batched(c):
    rows, columns = (c.m, c.n) if c.transpose == "no" else (c.n, c.m)
    for (a, at_a), (x, at_x), (to, at_y) in places_of_batch(c, "axy"):
        of_a = op(c.get(a, matrix(c.m, c.n, c.lda, at_a)), c.transpose)
        part = lambda at, view: lambda flat: view(flat[at:])
        of_x, into = c.get(x, part(at_x, vector(columns, c.incx))), part(at_y, vector(rows, c.incy))
        old = c.get(to, into, c.y_dtype)
        c.expect(to, into, weighed(c.factor("alpha"), of_a @ of_x) + weighed(c.factor("beta"), old), columns,
                 dtype=c.y_dtype)


def trsm_batched(c):
    order, left, into = c.m if c.side == "left" else c.n, c.side == "left", matrix(c.m, c.n, c.ldb)
    for a, b in zip(c.listed(0), c.listed(1)):
        of_a = op(triangle(c.xp, c.get(a, matrix(order, order, c.lda)), c.uplo, c.diagonal), c.transpose)
        of_b = c.get(b, into)
        x = c.xp.linalg.solve(of_a, of_b) if left else c.xp.linalg.solve(of_a.T, of_b.T).T
        c.expect(b, into, weighed(c.factor("alpha"), x), order)


def pivots_of(c, i, after=False):
    """Of the i-th matrix, from 0 on; none: each row stays."""
    return c.stored("pivots", "i32", after).reshape(c.batch, c.n)[i] - 1 if c.has("pivots") else np.arange(c.n)


def getrf_batched(c):
    a = matrix(c.n, c.n, c.lda)
    for i in c.listed(0):
        product, _ = product_of_factors(c.xp, c.after(i, a), pivots_of(c, i, after=True))
        error = abs(product - c.get(i, a)).max()
        c.demand("P L U - A", error, 8 * c.n * c.epsilon() * (2 + 2 * c.n))
        c.may_change(i)
    c.may_change("pivots")
    c.expect("info", vector(c.batch), 0, dtype="i32")


def lapack_batched(c):
    a, terms = matrix(c.m if c.task in ("geqrf", "gels") else c.n, c.n, c.lda), 4 * c.n
    for i, (of_a, other) in enumerate(zip(c.listed(0), c.listed(1))):
        stored = c.get(of_a, a)
        if c.task in ("getrs", "getri"):
            stored, _ = product_of_factors(c.xp, stored, pivots_of(c, i))
        if c.task == "getrs":
            into = matrix(c.n, c.nrhs, c.ldb)
            c.expect(other, into, c.xp.linalg.solve(op(stored, c.transpose), c.get(other, into)), terms)
        elif c.task in ("getri", "matinv"):
            c.expect(other, matrix(c.n, c.n, c.ldb), c.xp.linalg.inv(stored), terms)
        else:
            c.may_change(of_a)
            orthogonal(c, stored, c.xp.triu(c.after(of_a, a)[: c.n]), other)
    if c.has("info"):
        c.expect("info", vector(c.batch), 0, dtype="i32")


def orthogonal(c, a, r, other):
    """Of A = Q R the factor R, whose rows may have either sign, and of least squares the solution."""
    square = a.conj().T @ a
    c.demand("R^H R - A^H A", abs(r.conj().T @ r - square).max(), 16 * c.m * c.epsilon() * float(abs(square).max()))
    if c.task == "geqrf":
        return c.may_change(other)
    of_c = c.get(other, matrix(c.m, c.nrhs, c.ldb))
    solution = c.xp.linalg.solve(square, a.conj().T @ of_c)
    error = abs(c.after(other, matrix(c.n, c.nrhs, c.ldb)) - solution).max()
    c.demand("the solution", error, 64 * c.m * c.epsilon() * (1 + float(abs(solution).max())))
    c.may_change(other)


ORACLES = {"syr2k": syrk, "trsm": trmm} | {one.__name__: one for one in (
    axpy, scal, dot, nrm2, asum, iamax, copy, swap, rot, rotg, rotm, rotmg, gemv, gbmv, symv, ger, syr, syr2, trmv, gemm, gemm_ex,
    symm, syrk, trmm, geam, dgmm, tpttr, trttp, transform, matmul, gemm_batched, gemm_indexed, gemm_grouped, gemv_batched,
    trsm_batched, getrf_batched, lapack_batched)}

LARGE = {"f16": 6e4, "bf16": 1e30, "f32": 1e30, "c64": 1e30, "f64": 1e200, "c128": 1e200}


def unusual(name, dtype):
    """Products of complex infinities differ from one library to another. The squares of a norm need not fit the dtype."""
    numbers = [np.nan, 1e-42] if is_complex(dtype) else [np.nan, np.inf, -np.inf, 1e-42]
    return numbers + [LARGE[dtype], -LARGE[dtype], 1 / LARGE[dtype]] if name == "nrm2" else numbers


#: what computes with numbers that are not finite as NumPy does
UNUSUAL = {name: {dtype: unusual(name, dtype) for dtype in LARGE}
           for name in ("axpy", "scal", "dot", "nrm2", "asum", "copy", "swap", "rot", "gemv", "ger", "gemm", "syrk", "geam",
                        "dgmm", "gemm_batched", "gemv_batched")}
