"""Systems with sparse matrices by their factors, judged by NumPy's or CuPy's solutions and by residuals."""

import numpy as np

from case import EPSILON, is_complex
from command import matrix
from dense import op, whole

NOT_JUDGED = {"direct.release": "it computes nothing; direct.solve is judged before and after it"}


def hermitian(c):
    return c.kind in ("hermitian", "positive_definite")


def dense(c):
    """The matrix as a dense one, by what of it counts."""
    begin, column = (c.stored(name, c.index_dtype) for name in ("row_begin", "column"))
    rows = np.repeat(np.arange(c.n), np.diff(begin))
    full = c.xp.zeros((c.n, c.n), c.flat("value").dtype)
    full[c.xp.array(rows), c.xp.array(column)] = c.flat("value")
    return full if c.view == "full" else whole(c.xp, full, c.view, hermitian(c))


def told(c):
    """An outcome, and how many elements the factors have."""
    numbers = c.stored("told", "i64", after=True)
    c.demand("outcome", abs(int(numbers[0])), 0)
    c.may_change("told")
    return numbers


def analyse(c):
    numbers = told(c)
    if numbers[1] != -1:
        c.demand("elements of the factors that are missing", max(0, c.n - int(numbers[1])), 0)
    c.demand("memory below none", max(0, -int(numbers[2])), 0)


def factor(c):
    """Eigenvalues of either sign are counted, or -1 says that they are not."""
    numbers = told(c)
    c.demand("elements of the factors that are missing", max(0, c.n - int(numbers[1])), 0)
    counts = [-1, -1]
    if hermitian(c) or (c.kind == "symmetric" and not is_complex(c.dtype)):
        eigenvalues = np.linalg.eigvalsh(c.host(dense(c)))
        counts = [int(np.sum(eigenvalues > 0)), int(np.sum(eigenvalues < 0))]
    for sign, count, found in zip(("positive", "negative"), counts, numbers[2:]):
        c.demand(f"{sign} eigenvalues", 0 if found == -1 and c.kind != "positive_definite" else abs(found - count), 0)


def solve(c):
    a, b, into = op(dense(c), c.transpose), c.get("b", matrix(c.n, c.nrhs, c.ldb)), matrix(c.n, c.nrhs, c.ldx)
    c.expect("x", into, c.xp.linalg.solve(a, b), c.n)
    x = c.after("x", into)
    size = float(abs(a).sum(axis=1).max()) * float(abs(x).max()) + float(abs(b).max())
    c.demand("residual", float(abs(b - a @ x).max()) / (size or 1), 8 * (c.n + 2) * EPSILON[c.real_dtype()])
    told(c)


def schur(c):
    """The Schur complement of some rows, but not of all."""
    a, kept = dense(c), c.stored("rows", c.index_dtype)
    others = np.setdiff1d(np.arange(c.n), kept)

    def block(rows, columns):
        return a[c.xp.array(rows)][:, c.xp.array(columns)]

    solution = c.xp.linalg.solve(block(others, others), block(others, kept))
    c.expect("s", matrix(c.count, c.count, c.lds), block(kept, kept) - block(kept, others) @ solution, c.n)
    told(c)


ORACLES = {one.__name__: one for one in (analyse, factor, solve, schur)}
UNUSUAL = {}
