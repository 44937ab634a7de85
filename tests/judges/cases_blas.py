"""BLAS, by dense products of NumPy's or CuPy's."""

import numpy as np

from blas_batches import gemm_batched, gemm_grouped, gemv_batched, getrf_batched, lapack_batched, trsm_batched
from case import EPSILON, NUMBERS, Case, is_complex, real_of, weighed
from dense import TRANSPOSES, from_band, half, op, packed_places, real_diagonal, shapes, triangle, unpacked, whole
from epilogues import matmul_aux

NOT_JUDGED = {"blas.tune_matmul": "it measures, and computes nothing"}
NARROW = ["f16", "bf16"]


# ---- level 1


def axpy(c, n):
    alpha = c.factor("alpha")
    c.vector("x", n), c.vector("y", n)
    c.expect("y", weighed(alpha, c.get("x")) + c.get("y"))


def scal(c, n):
    alpha = c.factor("alpha", real=c.call == "scal_real")
    c.vector("x", n, either_sign=False)
    c.expect("x", alpha * c.get("x"))


def dot(c, n):
    c.vector("x", n), c.vector("y", n), c.add("result", c.numbers(1))
    x = c.get("x").conj() if c.call == "dotc" else c.get("x")
    c.expect("result", c.xp.sum(x * c.get("y")), n)


def nrm2(c, n):
    c.vector("x", n, either_sign=False), c.add("result", c.random.uniform(-1, 1, 1), real_of(c.dtype))
    x = c.get("x")
    largest = float(abs(x).max()) if n else 0.0
    scale = largest if 0 < largest < np.inf else 1.0  # the square of the largest need not fit
    c.expect("result", scale * c.xp.linalg.norm(x / scale), n)


def ones_norm(x):
    return abs(x.real) + abs(x.imag)


def asum(c, n):
    c.vector("x", n, either_sign=False), c.add("result", c.random.uniform(-1, 1, 1), real_of(c.dtype))
    c.expect("result", ones_norm(c.get("x")).sum(), n)


def iamax(c, n):
    n = max(n, 1)
    c.vector("x", n, either_sign=False), c.add("result", [-7], "i64")
    find = c.xp.argmax if c.call == "iamax" else c.xp.argmin
    c.expect("result", find(ones_norm(c.get("x"))))


def copy(c, n):
    c.vector("x", n), c.vector("y", n)
    c.expect("y", c.get("x"))


def swap(c, n):
    c.vector("x", n), c.vector("y", n)
    c.expect("x", c.get("y")), c.expect("y", c.get("x"))


def rot(c, n):
    angle = c.random.uniform(0, 3)
    cosine, sine = np.cos(angle), np.sin(angle)
    if is_complex(c.dtype) and c.call == "rot":
        sine = sine * np.exp(1j)
    c.arguments.update(c=[cosine, 0.0], s=[complex(sine).real, complex(sine).imag])
    c.vector("x", n), c.vector("y", n)
    x, y = c.get("x"), c.get("y")
    c.expect("x", cosine * x + sine * y, 2), c.expect("y", cosine * y - np.conj(sine) * x, 2)


def rotg(c, n):
    c.add("a", c.numbers(1)), c.add("b", c.numbers(1))
    c.add("c", np.zeros(1), real_of(c.dtype)), c.add("s", np.zeros(1))
    a, b = c.get("a")[0], c.get("b")[0]

    def check(case):
        cosine, sine, r = (case.result(name)[0] for name in ("c", "s", "a"))
        tolerance = 8 * EPSILON[case.dtype]
        yield "rotates a to r", abs(cosine * a + sine * b - r), tolerance * 2
        yield "rotates b to 0", abs(cosine * b - np.conj(sine) * a), tolerance * 2
        yield "is a rotation", abs(cosine**2 + abs(sine) ** 2 - 1), tolerance

    c.checks.append(check)


def modified(flag, param):
    """H of a modified rotation; https://www.netlib.org/blas/srotm.f"""
    h11, h21, h12, h22 = param[1:5]
    return {-1: ((h11, h12), (h21, h22)), 0: ((1, h12), (h21, 1)), 1: ((h11, 1), (-1, h22)),
            -2: ((1, 0), (0, 1))}[int(flag)]


def rotm(c, n):
    flag = int(c.random.choice([-2, -1, 0, 1]))
    c.add("param", np.concatenate([[flag], c.numbers(4)]))
    c.vector("x", n), c.vector("y", n)
    (h11, h12), (h21, h22) = modified(flag, c.flat("param"))
    x, y = c.get("x"), c.get("y")
    c.expect("x", h11 * x + h12 * y, 2), c.expect("y", h21 * x + h22 * y, 2)


def rotmg(c, n):
    for name in ("d1", "d2"):
        c.add(name, c.random.uniform(0.1, 2, 1))
    c.add("x1", c.numbers(1)), c.add("y1", c.numbers(1)), c.add("param", np.zeros(5))
    x, y = c.get("x1")[0], c.get("y1")[0]

    def check(case):
        param = case.result("param")
        (h11, h12), (h21, h22) = modified(param[0], param)
        tolerance = 32 * EPSILON[case.dtype]
        yield "y becomes 0", abs(h21 * x + h22 * y), tolerance
        yield "x becomes x1", abs(h11 * x + h12 * y - case.result("x1")[0]), tolerance

    c.checks.append(check)


# ---- level 2


def gemv(c, n):
    m = c.extents(1)[0]
    t, alpha, beta = c.choose("transpose", TRANSPOSES), c.factor("alpha"), c.factor("beta")
    c.matrix("a", m, n)
    a = op(c.get("a"), t)
    c.vector("x", a.shape[1]), c.vector("y", a.shape[0])
    c.expect("y", weighed(alpha, a @ c.get("x")) + weighed(beta, c.get("y")), a.shape[1])


def gbmv(c, n):
    m, below, above = shapes(c.random, 1)[0], int(c.random.integers(0, 4)), int(c.random.integers(0, 4))
    below, above = min(below, m - 1), min(above, n - 1)
    t, alpha, beta = c.choose("transpose", TRANSPOSES), c.factor("alpha"), c.factor("beta")
    c.arguments.update(m=m, kl=below, ku=above)
    c.matrix("a", below + above + 1, n)
    a = op(from_band(c.xp, c.get("a"), m, n, below, above), t)
    c.vector("x", a.shape[1]), c.vector("y", a.shape[0])
    c.expect("y", alpha * (a @ c.get("x")) + beta * c.get("y"), below + above + 1)


def stored_symmetric(c, n, hermitian):
    """A symmetric matrix as the call stores it: in full, banded or packed."""
    uplo = c.choose("uplo", ["lower", "upper"])
    if c.call in ("sbmv", "hbmv"):
        k = c.arguments["k"] = min(3, n - 1)
        c.matrix("a", k + 1, n)
        below, above = (k, 0) if uplo == "lower" else (0, k)
        a = from_band(c.xp, c.get("a"), n, n, below, above)
    elif c.call in ("spmv", "hpmv"):
        c.add("a", c.numbers(n * (n + 1) // 2))
        a = unpacked(c.xp, c.flat("a"), n, uplo)
    else:
        c.matrix("a", n, n)
        a = c.get("a")
    return whole(c.xp, a, uplo, hermitian)


def symv(c, n):
    alpha, beta = c.factor("alpha"), c.factor("beta")
    a = stored_symmetric(c, n, c.call.startswith("h"))
    c.vector("x", n), c.vector("y", n)
    c.expect("y", alpha * (a @ c.get("x")) + beta * c.get("y"), n)


def ger(c, n):
    m, alpha = c.extents(1)[0], c.factor("alpha")
    c.vector("x", m), c.vector("y", n), c.matrix("a", m, n)
    y = c.get("y").conj() if c.call == "gerc" else c.get("y")
    c.expect("a", weighed(alpha, c.xp.outer(c.get("x"), y)) + c.get("a"), 2)


def update(c, n, change, hermitian):
    """A half of a symmetric matrix plus the same of `change`, in full or packed."""
    uplo = c.arguments["uplo"]
    if c.call.startswith(("sp", "hp")):
        c.add("a", c.numbers(n * (n + 1) // 2))
        rows, columns = packed_places(c.xp, n, uplo)
        if hermitian:
            stored = c.arrays["a"][0]
            on_diagonal = c.host(rows == columns)
            stored[on_diagonal] = stored[on_diagonal].real
        c.expect("a", c.get("a") + change[rows, columns], 3)
    else:
        c.matrix("a", n, n)
        if hermitian:
            real_diagonal(c, "a")
        c.expect("a", c.get("a") + change, 3, half(c.xp, n, uplo))


def syr(c, n):
    hermitian = c.call.startswith("h")
    alpha = c.factor("alpha", values=(-1.5, 0.5, 1.0), real=hermitian)
    c.choose("uplo", ["lower", "upper"]), c.vector("x", n)
    x = c.get("x")
    change = alpha * c.xp.outer(x, x.conj() if hermitian else x)
    update(c, n, change, hermitian)


def syr2(c, n):
    hermitian, alpha = c.call.startswith("h"), c.factor("alpha", values=(-1.5, 0.5, 1.0))
    c.choose("uplo", ["lower", "upper"]), c.vector("x", n), c.vector("y", n)
    x, y = c.get("x"), c.get("y")
    if hermitian:
        change = alpha * c.xp.outer(x, y.conj()) + np.conj(alpha) * c.xp.outer(y, x.conj())
    else:
        change = alpha * (c.xp.outer(x, y) + c.xp.outer(y, x))
    update(c, n, change, hermitian)


def trmv(c, n):
    uplo, diagonal = c.choose("uplo", ["lower", "upper"]), c.choose("diagonal", ["stored", "unit"])
    t = c.choose("transpose", TRANSPOSES)
    solves = c.call.endswith("sv")
    scale = 0.5 / n if solves else 1  # unit triangles of large elements are ill conditioned
    if c.call.startswith("tb"):
        k = c.arguments["k"] = min(3, n - 1)
        leading = k + 1
        c.matrix("a", leading, n, c.numbers(leading * n).reshape(leading, n) * scale)
        c.view("a", c.arrays["a"][0])[0 if uplo == "lower" else k] = 2
        a = from_band(c.xp, c.get("a"), n, n, *((k, 0) if uplo == "lower" else (0, k)))
    elif c.call.startswith("tp"):
        places = packed_places(np, n, uplo)
        c.add("a", np.where(places[0] == places[1], 2, scale * c.numbers(n * (n + 1) // 2)))
        a = unpacked(c.xp, c.flat("a"), n, uplo)
    else:
        c.matrix("a", n, n, c.numbers(n * n).reshape(n, n) * scale)
        view = c.view("a", c.arrays["a"][0])
        np.fill_diagonal(view, 2)
        a = c.get("a")
    c.vector("x", n)
    a = op(triangle(c.xp, a, uplo, diagonal), t)
    x = c.get("x")
    c.expect("x", c.xp.linalg.solve(a, x) if solves else a @ x, n)


# ---- level 3


def gemm(c, n, eps=None):
    m, k = c.extents(2)
    ta, tb = c.choose("transpose_a", TRANSPOSES), c.choose("transpose_b", TRANSPOSES)
    alpha, beta = c.factor("alpha"), c.factor("beta")
    c.matrix("a", *((m, k) if ta == "no" else (k, m)))
    c.matrix("b", *((k, n) if tb == "no" else (n, k)))
    c.matrix("c", m, n)
    c.expect("c", weighed(alpha, op(c.get("a"), ta) @ op(c.get("b"), tb)) + weighed(beta, c.get("c")), k, eps=eps)


def gemm_ex(c, n):
    _, result, compute = c.call.split()
    m, k = shapes(c.random, 2)
    ta, tb = c.choose("transpose_a", TRANSPOSES), c.choose("transpose_b", TRANSPOSES)
    integers = compute == "i32"
    if integers:  # cuBLAS does not have all products of other extents, nor of two transposes
        m, n, k = ((x + 15) // 16 * 16 for x in (m, n, k))
        if ta != "no" and tb != "no":
            tb = c.arguments["transpose_b"] = "no"
    alpha, beta = (c.factor(name, (-2.0, 1.0, 3.0) if integers else (-1.5, 1.0, 0.75)) for name in ("alpha", "beta"))
    fours = (lambda rows: (rows + 3) // 4 * 4) if integers else (lambda rows: None)
    for name, shape in (("a", (m, k) if ta == "no" else (k, m)), ("b", (k, n) if tb == "no" else (n, k))):
        c.matrix(name, *shape, leading=fours(shape[0]))
    c.matrix("c", m, n, dtype=result)
    a, b = c.get("a"), c.get("b")
    if integers:
        a, b = a.astype(c.xp.int64), b.astype(c.xp.int64)
        alpha, beta = int(alpha), int(beta)
    eps = 2.0**-10 if compute == "tf32" else None
    c.expect("c", alpha * (op(a, ta) @ op(b, tb)) + beta * c.get("c"), k, eps=eps)


def matmul(c, n):
    m, k = shapes(c.random, 2)
    eight = c.dtype in ("i8", "f8e4m3", "f8e5m2")
    if eight:  # for which cuBLASLt wants multiples of 16, and A transposed
        m, n, k = (int(x) for x in c.random.choice([16, 32, 64], 3))
        c.arguments.update(transpose_a="yes", transpose_b="no")
        ta, tb, leading = "yes", "no", k
    else:
        ta, tb, leading = c.choose("transpose_a", TRANSPOSES), c.choose("transpose_b", TRANSPOSES), None
    result = {"i8": "i32", "f8e4m3": "bf16", "f8e5m2": "bf16"}.get(c.dtype, c.dtype)
    some = ["none", "relu", "gelu", "bias", "relu_bias", "gelu_bias"]
    epilogue = c.choose("epilogue", some if c.dtype in ("f16", "bf16", "f32") else ["none"])
    c.matrix("a", *((m, k) if ta == "no" else (k, m)), leading=leading)
    c.matrix("b", *((k, n) if tb == "no" else (n, k)), dtype="f8e4m3" if c.dtype == "f8e5m2" else None, leading=leading)
    c.matrix("d", m, n, dtype=result, leading=m if eight else None)
    a, b = c.get("a"), c.get("b")
    if c.dtype == "i8":
        a, b = a.astype(c.xp.int64), b.astype(c.xp.int64)
    x = op(a, ta) @ op(b, tb)
    if "bias" in epilogue:
        c.add("bias", c.numbers(m))
        x = x + c.flat("bias")[:, None]
    if epilogue.startswith("relu"):
        x = c.xp.maximum(x, 0)
    if epilogue.startswith("gelu"):
        x = x * (1 + c.xp.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2
    # Hardware adds products of 8 bits up in 14 bits or so.
    c.expect("d", x, k, eps=2.0**-13 if c.dtype.startswith("f8") else None)


def symm(c, n):
    m, side, uplo = shapes(c.random, 1)[0], c.choose("side", ["left", "right"]), c.choose("uplo", ["lower", "upper"])
    alpha, beta = c.factor("alpha"), c.factor("beta")
    order = m if side == "left" else n
    c.matrix("a", order, order), c.matrix("b", m, n), c.matrix("c", m, n)
    a, b = whole(c.xp, c.get("a"), uplo, c.call == "hemm"), c.get("b")
    c.expect("c", alpha * (a @ b if side == "left" else b @ a) + beta * c.get("c"), order)


def syrk(c, n):
    hermitian, two = c.call.startswith("h"), c.call.endswith("2k")
    k, uplo = c.extents(1)[0], c.choose("uplo", ["lower", "upper"])
    t = c.choose("transpose", ["no", "conjugate"] if hermitian else ["no", "yes"])
    values = (-1.5, 0.5, 1.0)
    alpha, beta = c.factor("alpha", values, real=hermitian and not two), c.factor("beta", values, real=hermitian)
    shape = (n, k) if t == "no" else (k, n)
    c.matrix("a", *shape), c.matrix("c", n, n)
    if hermitian:
        real_diagonal(c, "c")
    dual = (lambda x: x.conj().T) if hermitian else (lambda x: x.T)
    a = c.get("a") if t == "no" else dual(c.get("a"))
    if two:
        c.matrix("b", *shape)
        b = c.get("b") if t == "no" else dual(c.get("b"))
        other = np.conj(alpha) if hermitian else alpha
        products = alpha * (a @ dual(b)) + other * (b @ dual(a))
    else:
        products = alpha * (a @ dual(a))
    c.expect("c", products + beta * c.get("c"), 2 * k, half(c.xp, n, uplo))


def trmm(c, n):
    m, side, uplo = shapes(c.random, 1)[0], c.choose("side", ["left", "right"]), c.choose("uplo", ["lower", "upper"])
    t, diagonal = c.choose("transpose", TRANSPOSES), c.choose("diagonal", ["stored", "unit"])
    alpha, order = c.factor("alpha"), m if side == "left" else n
    solves = c.call == "trsm"
    c.matrix("a", order, order, c.numbers(order**2).reshape(order, order) * (0.5 / order if solves else 1))
    np.fill_diagonal(c.view("a", c.arrays["a"][0]), 2)
    c.matrix("b", m, n)
    a, b = op(triangle(c.xp, c.get("a"), uplo, diagonal), t), c.get("b")
    if solves:
        x = c.xp.linalg.solve(a, b) if side == "left" else c.xp.linalg.solve(a.T, b.T).T
        c.expect("b", alpha * x, order)
    else:
        c.matrix("c", m, n)
        c.expect("c", alpha * (a @ b if side == "left" else b @ a), order)


def geam(c, n):
    m = c.extents(1)[0]
    ta, tb = c.choose("transpose_a", TRANSPOSES), c.choose("transpose_b", TRANSPOSES)
    alpha, beta = c.factor("alpha"), c.factor("beta")
    c.matrix("a", *((m, n) if ta == "no" else (n, m))), c.matrix("b", *((m, n) if tb == "no" else (n, m)))
    c.matrix("c", m, n)
    c.expect("c", weighed(alpha, op(c.get("a"), ta)) + weighed(beta, op(c.get("b"), tb)), 2)


def transform(c, n):
    """The cuda engine does not conjugate: conformance has that."""
    m = shapes(c.random, 1)[0]
    ta, tb = c.choose("transpose_a", ["no", "yes"]), c.choose("transpose_b", ["no", "yes"])
    integers = c.dtype in ("i8", "i32")
    alpha, beta = (c.factor(name, (-2.0, 1.0, 3.0) if integers else (-1.5, 0.0, 0.75)) for name in ("alpha", "beta"))

    def matrix(name, rows, columns):
        by_row = c.choose("order_" + name, ["column", "row"]) == "row"
        c.matrix(name, *((columns, rows) if by_row else (rows, columns)))
        return c.get(name).T if by_row else c.get(name)

    a = matrix("a", *((m, n) if ta == "no" else (n, m)))
    b = matrix("b", *((m, n) if tb == "no" else (n, m)))
    matrix("c", m, n)
    value = alpha * op(a, ta) + beta * op(b, tb)
    c.expect("c", value.T if c.arguments["order_c"] == "row" else value, 2)


def dgmm(c, n):
    m, side = c.extents(1)[0], c.choose("side", ["left", "right"])
    c.matrix("a", m, n), c.vector("x", m if side == "left" else n), c.matrix("c", m, n)
    x = c.get("x")
    c.expect("c", (x[:, None] if side == "left" else x[None, :]) * c.get("a"), 1)


def tpttr(c, n):
    uplo = c.choose("uplo", ["lower", "upper"])
    c.add("packed", c.numbers(n * (n + 1) // 2)), c.matrix("a", n, n)
    c.expect("a", unpacked(c.xp, c.flat("packed"), n, uplo), 1, half(c.xp, n, uplo))


def trttp(c, n):
    uplo = c.choose("uplo", ["lower", "upper"])
    c.add("packed", c.numbers(n * (n + 1) // 2)), c.matrix("a", n, n)
    c.expect("packed", c.get("a")[packed_places(c.xp, n, uplo)])


REALS, COMPLEX, ALL = ["f32", "f64"], ["c64", "c128"], NARROW + NUMBERS
#: operation: [(call, dtypes, what makes a case of it)]
CALLS = {
    "axpy": [("axpy", ALL, axpy)],
    "scal": [("scal", ALL, scal), ("scal_real", COMPLEX, scal)],
    "dot": [("dot", ALL, dot), ("dotc", COMPLEX, dot)],
    "nrm2": [("nrm2", ALL, nrm2)],
    "asum": [("asum", NUMBERS, asum)],
    "iamax": [("iamax", NUMBERS, iamax), ("iamin", NUMBERS, iamax)],
    "copy": [("copy", NUMBERS, copy)],
    "swap": [("swap", NUMBERS, swap)],
    "rot": [("rot", NUMBERS, rot), ("rot_real", COMPLEX, rot)],
    "rotg": [("rotg", NUMBERS, rotg)],
    "rotm": [("rotm", REALS, rotm)],
    "rotmg": [("rotmg", REALS, rotmg)],
    "gemv": [("gemv", NUMBERS, gemv)],
    "gbmv": [("gbmv", NUMBERS, gbmv)],
    "symv": [("symv", NUMBERS, symv)] + [(call, REALS, symv) for call in ("sbmv", "spmv")]
    + [(call, COMPLEX, symv) for call in ("hemv", "hbmv", "hpmv")],
    "ger": [("ger", NUMBERS, ger), ("gerc", COMPLEX, ger)],
    "syr": [("syr", NUMBERS, syr), ("spr", REALS, syr), ("her", COMPLEX, syr), ("hpr", COMPLEX, syr)],
    "syr2": [("syr2", NUMBERS, syr2), ("spr2", REALS, syr2), ("her2", COMPLEX, syr2), ("hpr2", COMPLEX, syr2)],
    "trmv": [(call, NUMBERS, trmv) for call in ("trmv", "trsv", "tbmv", "tbsv", "tpmv", "tpsv")],
    "gemm": [("gemm", ALL, gemm)],
    "gemm_ex": [("gemm_ex f16 f32", ["f16"], gemm_ex), ("gemm_ex f32 f32", ["f16", "bf16", "f32"], gemm_ex),
                ("gemm_ex bf16 f32", ["bf16"], gemm_ex), ("gemm_ex f32 tf32", ["f32"], gemm_ex),
                ("gemm_ex f64 f64", ["f64"], gemm_ex), ("gemm_ex c64 f32", ["c64"], gemm_ex),
                ("gemm_ex c128 f64", ["c128"], gemm_ex), ("gemm_ex i32 i32", ["i8"], gemm_ex)],
    "matmul": [("matmul", ALL + ["i8", "f8e4m3", "f8e5m2"], matmul), ("matmul_aux", NARROW + ["f32"], matmul_aux)],
    "transform": [("transform", ALL + ["i8", "i32", "f8e4m3", "f8e5m2"], transform)],
    "symm": [("symm", NUMBERS, symm), ("hemm", COMPLEX, symm)],
    "syrk": [("syrk", NUMBERS, syrk), ("herk", COMPLEX, syrk)],
    "syr2k": [("syr2k", NUMBERS, syrk), ("her2k", COMPLEX, syrk)],
    "trmm": [("trmm", NUMBERS, trmm)],
    "trsm": [("trsm", NUMBERS, trmm)],
    "geam": [("geam", NUMBERS, geam)],
    "dgmm": [("dgmm", NUMBERS, dgmm)],
    "tpttr": [("tpttr", NUMBERS, tpttr)],
    "trttp": [("trttp", NUMBERS, trttp)],
    "gemm_batched": [("gemm_batched", ALL, gemm_batched)],
    "gemm_indexed": [("gemm_indexed", NUMBERS, gemm_batched)],
    "gemm_grouped": [("gemm_grouped", NARROW + REALS, gemm_grouped)],
    "gemv_batched": [("gemv_batched", ALL, gemv_batched)],
    "trsm_batched": [("trsm_batched", NUMBERS, trsm_batched)],
    "getrf_batched": [("getrf_batched", NUMBERS, getrf_batched)],
    "lapack_batched": [(call, NUMBERS, lapack_batched) for call in ("lapack_batched", "matinv_batched",
                                                                     "gels_batched")],
}


LARGE = {"f16": 6e4, "bf16": 1e30, "f32": 1e30, "c64": 1e30, "f64": 1e200, "c128": 1e200}
#: what computes with numbers that are not finite as NumPy does, and with extents of 0
UNUSUAL = [axpy, scal, dot, nrm2, asum, copy, swap, rot, gemv, ger, gemm, syrk, geam, dgmm, gemm_batched, gemv_batched]


def cases(xp, random, rounds):
    for operation, calls in CALLS.items():
        for call, dtypes, make in calls:
            for dtype in dtypes:
                for n in shapes(random, rounds):
                    case = Case(xp, random, f"blas.{operation}", call, dtype)
                    make(case, n)
                    yield case
                for _ in range(rounds if make in UNUSUAL else 0):
                    case = Case(xp, random, f"blas.{operation}", call, dtype)
                    # Products of complex infinities differ from one library to another.
                    case.unusual = [np.nan, 1e-42] if is_complex(dtype) else [np.nan, np.inf, -np.inf, 1e-42]
                    if make is nrm2:  # whose squares need not fit the dtype
                        case.unusual = case.unusual + [LARGE[dtype], -LARGE[dtype], 1 / LARGE[dtype]]
                    make(case, case.extents(1)[0])
                    yield case
