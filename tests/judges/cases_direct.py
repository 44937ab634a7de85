"""Systems with sparse matrices by their factors, judged by NumPy's solutions and SciPy's residuals."""

import numpy as np

from case import EPSILON, NUMBERS, is_complex, real_of
from cases_sparse_more import SparseCase, extents, structure
from dense import op, whole

NOT_JUDGED = {"direct.release": "it computes nothing; direct.solve is judged before and after it"}
KINDS = ["general", "symmetric", "hermitian", "positive_definite"]


class DirectCase(SparseCase):
    """A call, and its matrix: of each kind, and by what is stored of it."""

    def __init__(self, xp, random, name, dtype, kind, may_match=True):
        super().__init__(xp, random, name, dtype, f"direct_{name}")
        self.operation = f"direct.{name}"
        self.kind = self.choose("kind", [kind])
        self.half = self.choose("view", ["full"] if kind == "general" else ["full", "lower", "upper"])
        self.arguments["matching"] = may_match and kind != "positive_definite" and bool(random.integers(2))
        self.n = extents(random, 1)[0]
        self.add_matrix()

    def hermitian(self):
        return self.kind in ("hermitian", "positive_definite")

    def values(self, places):
        """Numbers at `places`, and a diagonal that is larger than what stands beside it."""
        full = np.where(places, self.numbers(places.size).reshape(places.shape), 0) * min(1, 2 / self.n)
        signs = 1 if self.kind == "positive_definite" else self.random.choice([-1, 1], self.n)
        diagonal = signs * self.random.uniform(4, 5, self.n)
        if self.kind != "general":
            full = np.tril(full, -1)
            full = full + (full.conj().T if self.hermitian() else full.T)
        full[np.diag_indices(self.n)] = diagonal
        return full

    def add_matrix(self):
        places = structure(self.random, self.n, self.n)
        np.fill_diagonal(places, True)
        if self.kind != "general":
            places |= places.T
        self.places, self.rows = places, np.arange(self.n)
        if self.kind == "general" and self.arguments["matching"]:
            self.rows = self.random.permutation(self.n)  # small elements and none come to the diagonal
        full = self.values(places)[self.rows]
        stored = places[self.rows]
        if self.half != "full":
            kept = np.tril(stored) if self.half == "lower" else np.triu(stored)
            if self.random.integers(2):
                stored = kept
            else:  # what stands in the other half does not count
                full = np.where(kept, full, 9)
        a = self.listed("a", stored, tame=lambda row, column, _: full[row, column])
        self.a = a if self.half == "full" else whole(self.xp, a, self.half, self.hermitian())
        self.stored = stored

    def add_other_values(self):
        """Of a matrix with the same pattern, whose factors are there before."""
        full = self.values(self.places)[self.rows]
        self.arguments.update(before=True, release=bool(self.random.integers(2)))
        self.add("before_value", full[np.nonzero(self.stored)])

    def told(self, count):
        self.add("told", np.full(count, -7), "i64")

    def factored(self, told):
        """What is wrong with an answer whose first numbers are an outcome and how many elements the factors have."""
        known = told[1] != -1
        yield "outcome", abs(int(told[0])), 0
        yield "elements of the factors that are missing", max(0, self.n - int(told[1])) if known else 0, 0


def analysed(case):
    told = case.results["told"]
    yield from case.factored(told)
    yield "memory below none", max(0, -int(told[2])), 0


def factors_told(case):
    """Eigenvalues of either sign are counted, or -1 says that they are not."""
    told = case.results["told"]
    yield from case.factored(told)
    yield "unknown elements of the factors", int(told[1] < 0), 0
    if case.hermitian() or (case.kind == "symmetric" and not is_complex(case.dtype)):
        eigenvalues = np.linalg.eigvalsh(case.host(case.a))
        counts = [int(np.sum(eigenvalues > 0)), int(np.sum(eigenvalues < 0))]
    else:
        counts = [-1, -1]
    for sign, count, found in zip(("positive", "negative"), counts, told[2:]):
        yield f"{sign} eigenvalues", 0 if found == -1 and case.kind != "positive_definite" else abs(found - count), 0


def residual(case):
    """B - op(A) X by a sparse product, beside what A, X and B are."""
    a = case.sparse(op(case.a, case.arguments["transpose"]))
    x, b = case.result("x"), case.get("b")
    size = float(abs(a).sum(axis=1).max()) * float(abs(x).max()) + float(abs(b).max())
    yield "residual", abs(b - a @ x).max() / size, 8 * (case.n + 2) * EPSILON[real_of(case.dtype)]


def solved(xp, random, dtype, kind):
    case = DirectCase(xp, random, "solve", dtype, kind)
    transposes = ["no", "yes", "conjugate"]
    if is_complex(dtype):
        if case.hermitian():
            transposes.remove("yes")
        if kind == "symmetric":
            transposes.remove("conjugate")
    transpose = case.choose("transpose", transposes)
    case.arguments["refinement"] = int(random.integers(3))
    if random.integers(2):
        case.add_other_values()
    columns = int(random.choice([1, 2, 9]))
    case.matrix("b", case.n, columns), case.matrix("x", case.n, columns)
    case.expect("x", xp.linalg.solve(op(case.a, transpose), case.get("b")), case.n)
    case.checks.append(residual)
    case.told(1)
    case.expect_flat("told", np.zeros(1, np.int64))
    return case


def complemented(xp, random, dtype, kind):
    """The Schur complement of some rows, but not of all."""
    case = DirectCase(xp, random, "schur", dtype, kind, may_match=False)
    while case.n == 1:
        case = DirectCase(xp, random, "schur", dtype, kind, may_match=False)
    count = int(random.integers(1, min(case.n, 40)))
    kept = np.sort(random.choice(case.n, count, replace=False))
    others = np.setdiff1d(np.arange(case.n), kept)
    case.add("rows", kept, case.indices)
    case.matrix("s", count, count)

    def block(rows, columns):
        return case.a[xp.array(rows)][:, xp.array(columns)]

    solution = xp.linalg.solve(block(others, others), block(others, kept))
    case.expect("s", block(kept, kept) - block(kept, others) @ solution, case.n)
    case.told(1)
    case.expect_flat("told", np.zeros(1, np.int64))
    return case


def cases(xp, random, rounds):
    for _ in range(rounds):
        for dtype in NUMBERS:
            for kind in KINDS:
                for name, count, check in (("analyse", 3, analysed), ("factor", 4, factors_told)):
                    case = DirectCase(xp, random, name, dtype, kind)
                    case.told(count)
                    case.checks.append(check)
                    yield case
                yield solved(xp, random, dtype, kind)
                yield complemented(xp, random, dtype, kind)
