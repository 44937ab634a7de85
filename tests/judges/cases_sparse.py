"""Sparse matrices, by SciPy or by what CuPy has of it."""

import importlib

import numpy as np

from case import NUMBERS, Case, is_complex
from dense import TRANSPOSES, op

NOT_JUDGED = {"sparse.spmv_sell": "SciPy has no sliced ELL"}


def library(xp):
    return importlib.import_module("scipy.sparse" if xp is np else "cupyx.scipy.sparse")


def extents(random, count):
    return [int(n) for n in random.choice([1, 2, 7, 33, 64, 130], count)]


def structure(random, rows, columns):
    """Places of a matrix of which some rows are empty, and one may be full."""
    density = random.choice([0.02, 0.1, 0.5])
    places = random.uniform(size=(rows, columns)) < density
    if random.integers(3) == 0:
        places[random.integers(rows)] = True
    return places


class SparseCase(Case):
    def __init__(self, xp, random, name, dtype, call=None):
        super().__init__(xp, random, f"sparse.{name}", call or name, dtype)
        self.indices = self.choose("indices", ["i32", "i64"])

    def csr(self, name, places, values=None):
        """Adds a matrix with elements at `places`, by rows with ascending columns, and gives it as a dense array."""
        rows, columns = places.shape
        where = np.nonzero(places)
        values = self.numbers(len(where[0])) if values is None else values
        self.arguments[name] = [rows, columns]
        self.add(f"{name}_begin", np.concatenate([[0], np.cumsum(places.sum(axis=1))]), self.indices)
        self.add(f"{name}_index", where[1], self.indices)
        self.add(f"{name}_value", values)
        return self.whole(places, self.flat(f"{name}_value"))

    def whole(self, places, values):
        full = self.xp.zeros(places.shape, values.dtype)
        full[self.xp.array(places)] = values
        return full

    def sparse(self, full):
        return library(self.xp).csr_matrix(full)

    def becomes_csr(self, name, places, full, room=0, terms=1):
        """A matrix that the call writes: `full`, with elements at `places`, and room for some more."""
        rows, columns = places.shape
        count = int(places.sum())
        self.arguments[name] = [rows, columns]
        begin = np.concatenate([[0], np.cumsum(places.sum(axis=1))])
        self.add(f"{name}_begin", np.full(rows + 1, -1), self.indices)
        self.add(f"{name}_index", np.full(count + room, -1), self.indices)
        self.add(f"{name}_value", self.numbers(count + room))
        self.expect_flat(f"{name}_begin", begin)
        index = np.full(count + room, -1)
        index[:count] = np.nonzero(places)[1]
        self.expect_flat(f"{name}_index", index)
        value = self.host(self.flat(f"{name}_value")).copy()
        value[:count] = self.host(full)[places]
        self.expect_flat(f"{name}_value", value, terms)

    def dense(self, name, rows, columns, order_name):
        """Adds a matrix, by columns or by rows, and gives it."""
        by_rows = self.choose(order_name, ["column", "row"]) == "row"
        self.matrix(name, *((columns, rows) if by_rows else (rows, columns)))
        return self.get(name).T if by_rows else self.get(name)

    def dense_becomes(self, name, value, order_name, terms):
        self.expect(name, value.T if self.arguments[order_name] == "row" else value, terms)


def products(xp, random, dtype):
    rows, columns, n = extents(random, 3)
    case = SparseCase(xp, random, "spmm", dtype)
    a = case.sparse(case.csr("a", structure(random, rows, columns)))
    transpose = case.choose("transpose", TRANSPOSES)
    inner, outer = (columns, rows) if transpose == "no" else (rows, columns)
    b = case.dense("b", inner, n, "order_b")
    c = case.dense("c", outer, n, "order_c")
    alpha, beta = case.factor("alpha"), case.factor("beta")
    case.dense_becomes("c", alpha * (op(a, transpose) @ b) + beta * c, "order_c", inner)
    yield case

    rows, columns, k = extents(random, 3)
    case = SparseCase(xp, random, "sddmm", dtype)
    places = structure(random, rows, columns)
    old = case.csr("c", places)
    # cuSPARSE has no conjugates here.
    left, right = case.choose("transpose_a", TRANSPOSES[:2]), case.choose("transpose_b", TRANSPOSES[:2])
    a = case.dense("a", *((rows, k) if left == "no" else (k, rows)), "order_a")
    b = case.dense("b", *((k, columns) if right == "no" else (columns, k)), "order_b")
    alpha, beta = case.factor("alpha"), case.factor("beta")
    new = alpha * (op(a, left) @ op(b, right)) + beta * old
    case.expect("c_value", new[xp.array(places)], k)
    yield case

    rows, columns = extents(random, 2)
    case = SparseCase(xp, random, "transpose", dtype)
    places = structure(random, rows, columns)
    a = case.csr("a", places)
    case.becomes_csr("t", places.T, a.T)
    yield case


def products_of_reals(xp, random, dtype):
    rows, columns = extents(random, 2)
    case = SparseCase(xp, random, "spmv", dtype)
    a = case.sparse(case.csr("a", structure(random, rows, columns)))
    case.add("x", case.numbers(columns)), case.add("y", case.numbers(rows))
    alpha, beta = case.factor("alpha"), case.factor("beta")
    case.expect("y", alpha * (a @ case.get("x")) + beta * case.get("y"), columns)
    yield case

    n, count = extents(random, 2)
    case = SparseCase(xp, random, "gather", dtype)
    case.add("x", case.numbers(n)), case.add("y", case.numbers(count))
    index = random.integers(0, n, count)
    case.add("index", index, case.indices)
    case.expect("y", case.get("x")[xp.array(index)])
    yield case

    rows, inner, columns = extents(random, 3)
    case = SparseCase(xp, random, "spgemm", dtype)
    left, right = structure(random, rows, inner), structure(random, inner, columns)
    a, b = case.sparse(case.csr("a", left)), case.sparse(case.csr("b", right))
    places = (left.astype(int) @ right.astype(int)) > 0
    case.becomes_csr("c", places, (a @ b).toarray(), room=2, terms=inner)
    case.add("count", [-1], "i64")
    case.expect_flat("count", np.array([places.sum()]))
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


def cases(xp, random, rounds):
    for _ in range(rounds):
        for dtype in NUMBERS:
            yield from products(xp, random, dtype)
            yield from systems(xp, random, dtype)
            if not is_complex(dtype):
                yield from products_of_reals(xp, random, dtype)
