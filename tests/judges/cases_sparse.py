"""Algebra of sparse matrices and vectors, by SciPy or by what CuPy has of it."""

import numpy as np

from case import NUMBERS, is_complex, weighed
from cases_sparse_more import (LISTED, SparseCase, examinations, extents, of_blocks, of_dense, of_slices, rows_of_elements, sorts,
                               structure)
from dense import TRANSPOSES, op, triangle

NOT_JUDGED = {}


def products(xp, random, dtype):
    for form in LISTED:  # with numbers that are not finite, which elements that are not stored do not touch
        case = SparseCase(xp, random, "spmv", dtype)
        case.unusual = [np.nan] if is_complex(dtype) else [np.nan, np.inf, -np.inf]
        a = op(case.sparse(case.in_format("a", form)), case.choose("transpose", TRANSPOSES))
        case.add("x", case.numbers(a.shape[1])), case.add("y", case.numbers(a.shape[0]))
        case.disturb("x"), case.disturb("y")
        alpha, beta = case.factor("alpha"), case.factor("beta")
        case.expect("y", weighed(alpha, a @ case.get("x")) + weighed(beta, case.get("y")), a.shape[1])
        yield case

    for form in LISTED + ["bsr", "sell"]:
        case = SparseCase(xp, random, "spmv", dtype)
        a = case.sparse(case.in_format("a", form, any_order=form == "coo"))
        a = op(a, case.choose("transpose", TRANSPOSES))
        case.add("x", case.numbers(a.shape[1])), case.add("y", case.numbers(a.shape[0]))
        alpha, beta = case.factor("alpha"), case.factor("beta")
        case.expect("y", alpha * (a @ case.get("x")) + beta * case.get("y"), a.shape[1])
        yield case

    for form in LISTED + ["bsr", "blocked_ell"]:
        n = extents(random, 1)[0]
        case = SparseCase(xp, random, "spmm", dtype)
        a = case.sparse(case.in_format("a", form, any_order=True))
        a = op(a, case.choose("transpose", TRANSPOSES))
        b = case.dense("b", a.shape[1], n, "order_b")
        c = case.dense("c", a.shape[0], n, "order_c")
        alpha, beta = case.factor("alpha"), case.factor("beta")
        case.dense_becomes("c", alpha * (a @ b) + beta * c, "order_c", a.shape[1])
        yield case

    for form in ("csr", "bsr"):
        k = extents(random, 1)[0]
        case = SparseCase(xp, random, "sddmm", dtype)
        old = case.in_format("c", form)
        rows, columns = old.shape
        # cuSPARSE has no conjugates here.
        left, right = case.choose("transpose_a", TRANSPOSES[:2]), case.choose("transpose_b", TRANSPOSES[:2])
        a = case.dense("a", *((rows, k) if left == "no" else (k, rows)), "order_a")
        b = case.dense("b", *((k, columns) if right == "no" else (columns, k)), "order_b")
        alpha, beta = case.factor("alpha"), case.factor("beta")
        new = alpha * (op(a, left) @ op(b, right)) + beta * old
        case.expect("c_value", case.elements_of("c", new), k)
        yield case

    rows, columns = extents(random, 2)
    case = SparseCase(xp, random, "transpose", dtype)
    places = structure(random, rows, columns)
    a = case.csr("a", places, any_order=True)
    case.becomes_csr("t", places.T, a.T)
    yield case


#: of narrow products, by the dtype of the matrix
RESULTS = {"i8": ["i32", "f32"], "f16": ["f16", "f32"], "bf16": ["bf16", "f32"]}


def narrow_products(xp, random, dtype):
    for result in RESULTS[dtype]:
        integers = result == "i32"

        def factor(case, name):
            value = case.factor(name, (-2.0, 0.0, 1.0, 3.0) if integers else (-1.5, 0.0, 1.0, 0.75))
            return int(value) if integers else value

        def wide(case, numbers):
            return numbers.astype(xp.int64 if integers else xp.float64)

        for form in LISTED + ["bsr", "sell"]:
            case = SparseCase(xp, random, "spmv_ex", dtype, f"spmv_ex {result}")
            a = wide(case, case.in_format("a", form, any_order=form == "coo"))
            a = op(a, case.choose("transpose", TRANSPOSES))
            case.add("x", case.numbers(a.shape[1])), case.add("y", case.numbers(a.shape[0], result), result)
            alpha, beta = factor(case, "alpha"), factor(case, "beta")
            product = alpha * (a @ wide(case, case.get("x"))) + beta * wide(case, case.get("y"))
            case.expect("y", product, a.shape[1])
            yield case

        for form in LISTED + ["bsr", "blocked_ell"]:
            n = extents(random, 1)[0]
            case = SparseCase(xp, random, "spmm_ex", dtype, f"spmm_ex {result}")
            a = op(wide(case, case.in_format("a", form, any_order=True)), case.choose("transpose", TRANSPOSES))
            b = wide(case, case.dense("b", a.shape[1], n, "order_b"))
            c = wide(case, case.dense("c", a.shape[0], n, "order_c", of=result))
            case.dense_becomes("c", factor(case, "alpha") * (a @ b) + factor(case, "beta") * c, "order_c", a.shape[1])
            yield case


def vectors(xp, random, dtype):
    n, count = extents(random, 2)
    case = SparseCase(xp, random, "gather", dtype)
    case.add("x", case.numbers(n)), case.add("y", case.numbers(count))
    index = random.integers(0, n, count)
    case.add("index", index, case.indices)
    case.expect("y", case.get("x")[xp.array(index)])
    yield case

    for call in ("scatter", "axpby", "rot", "spvv"):
        n = extents(random, 1)[0]
        case = SparseCase(xp, random, call, dtype)
        index = xp.array(random.permutation(n)[: random.integers(1, n + 1)])
        case.add("index", case.host(index), case.indices)
        case.add("x", case.numbers(len(index))), case.add("y", case.numbers(n))
        x, y = case.get("x"), case.get("y")
        if call == "scatter":
            y[index] = x
            case.expect("y", y)
        elif call == "axpby":
            alpha, y = case.factor("alpha"), case.factor("beta") * y
            y[index] += alpha * x
            case.expect("y", y)
        elif call == "rot":
            cosine, sine, before = case.factor("c", real=True), case.factor("s"), y[index]
            y[index] = cosine * before - sine.conjugate() * x
            case.expect("x", cosine * x + sine * before), case.expect("y", y)
        else:
            case.add("result", case.numbers(1))
            left = x.conj() if case.choose("conjugate", ["no", "yes"]) == "yes" else x
            case.expect("result", xp.sum(left * y[index]), len(index))
        yield case


def sums_and_products(xp, random, dtype):
    rows, columns = extents(random, 2)
    case = SparseCase(xp, random, "geam", dtype)
    left, right = structure(random, rows, columns), structure(random, rows, columns)
    a, b = case.csr("a", left), case.csr("b", right)
    case.becomes_csr("c", left | right, case.factor("alpha") * a + case.factor("beta") * b, terms=2, counts=True)
    yield case

    for call in ("spgemm_reuse",) if is_complex(dtype) else ("spgemm_reuse", "spgemm"):
        rows, inner, columns = extents(random, 3)
        case = SparseCase(xp, random, call, dtype)
        left, right = structure(random, rows, inner), structure(random, inner, columns)
        a, b = (case.sparse(case.csr(*matrix, any_order=True)) for matrix in (("a", left), ("b", right)))
        product, places = (a @ b).toarray(), (left.astype(int) @ right.astype(int)) > 0
        if call == "spgemm":
            case.becomes_csr("c", places, product, terms=inner, counts=True)
        else:  # also where the product has no element, and not everywhere where it has one
            places = places if random.integers(2) else structure(random, rows, columns)
            case.csr("c", places)
            case.expect("c_value", product[xp.array(places)], inner)
        yield case


def triangular(case, n):
    """Adds a matrix of which one triangle is well conditioned, and gives op(T). What else it has does not count."""
    uplo, diagonal = case.choose("uplo", ["lower", "upper"]), case.choose("diagonal", ["stored", "unit"])
    places = structure(case.random, n, n)
    if diagonal == "stored":
        np.fill_diagonal(places, True)

    def tame(row, column, values):
        return np.where(row == column, values + 2, values * (2 / n if n > 2 else 1))

    form = case.random.choice(LISTED + ["sell"])
    a = case.sell("a", places, tame) if form == "sell" else case.listed("a", places, form, tame=tame)
    return op(triangle(case.xp, a, uplo, diagonal), case.choose("transpose", TRANSPOSES))


def triangular_systems(xp, random, dtype):
    n, columns = extents(random, 2)
    case = SparseCase(xp, random, "spsv", dtype)
    a, alpha = triangular(case, n), case.factor("alpha")
    in_place = bool(random.integers(2))
    if in_place:
        case.arguments["without"] = ["b"]
    else:
        case.add("b", case.numbers(n))
    case.add("x", case.numbers(n))
    case.expect("x", xp.linalg.solve(a, alpha * case.get("x" if in_place else "b")), n)
    yield case

    case = SparseCase(xp, random, "spsm", dtype)
    a, alpha = triangular(case, n), case.factor("alpha")
    right = case.dense("x", n, columns, "order_x")
    if random.integers(2):
        case.arguments.update(without=["b"], order_b=case.arguments["order_x"])
    else:
        right = case.dense("b", n, columns, "order_b")
    case.dense_becomes("x", xp.linalg.solve(a, alpha * right), "order_x", n)
    yield case


def few_diagonals(case, names, n):
    """Adds the diagonals, some elements of a list each, of matrices that are diagonally dominant."""
    for name in names:
        values = case.numbers(n)
        case.add(name, values + 6 if name == "diagonal" else values)
    return [case.get(name) for name in names]


def solution(xp, diagonals, right):
    """Of the system whose diagonals lie from the lowest to the highest."""
    n, reach = len(right), len(diagonals) // 2
    full = xp.zeros((n, n), diagonals[0].dtype)
    for offset, diagonal in zip(range(-reach, reach + 1), diagonals):
        rows = xp.arange(max(0, -offset), n - max(0, offset))
        full[rows, rows + offset] = diagonal[rows]
    return xp.linalg.solve(full, right)


def systems(xp, random, dtype):
    three, five = ["lower", "diagonal", "upper"], ["lower2", "lower", "diagonal", "upper", "upper2"]
    n, columns = int(random.choice([3, 5, 33, 130])), int(random.choice([1, 2, 9]))
    case = SparseCase(xp, random, "gtsv", dtype)
    diagonals = few_diagonals(case, three, n)
    case.matrix("b", n, columns)
    case.expect("b", solution(xp, diagonals, case.get("b")), n)
    yield case

    n, batch = int(random.choice([3, 5, 33, 130])), int(random.choice([1, 2, 9]))
    stride = n + int(random.integers(0, 3))
    case = SparseCase(xp, random, "gtsv_strided", dtype)
    case.arguments.update(n=n, batch=batch, stride=stride)
    diagonals = few_diagonals(case, three, batch * stride)
    case.add("x", case.numbers(batch * stride))
    x = case.flat("x")
    for i in range(batch):
        part = slice(i * stride, i * stride + n)
        x[part] = solution(xp, [d[part] for d in diagonals], x[part])
    case.expect_flat("x", x, n)
    yield case

    for call, names in (("gtsv_interleaved", three), ("gpsv_interleaved", five)):
        case = SparseCase(xp, random, call, dtype)
        case.arguments.update(n=n, batch=batch)
        if call == "gtsv_interleaved":
            case.choose("elimination", ["thomas", "lu", "qr"])
        diagonals = few_diagonals(case, names, batch * n)
        case.add("x", case.numbers(batch * n))
        x = case.flat("x")
        for i in range(batch):
            part = slice(i, None, batch)
            x[part] = solution(xp, [d[part] for d in diagonals], x[part])
        case.expect_flat("x", x, n)
        yield case


FAMILIES = [products, vectors, sums_and_products, triangular_systems, systems, of_dense, of_blocks, of_slices, sorts]


def cases(xp, random, rounds):
    for _ in range(rounds):
        for dtype in NUMBERS:
            for family in FAMILIES:
                yield from family(xp, random, dtype)
        for dtype in RESULTS:
            yield from narrow_products(xp, random, dtype)
        for dtype in ("i32", "i64"):
            yield from rows_of_elements(xp, random, dtype)
            yield from examinations(xp, random, dtype)
