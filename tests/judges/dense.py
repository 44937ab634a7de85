"""Dense matrices by what BLAS and LAPACK store of them."""

TRANSPOSES = ["no", "yes", "conjugate"]


def op(matrix, transpose):
    return {"no": matrix, "yes": matrix.T, "conjugate": matrix.conj().T}[transpose]


def half(xp, n, uplo):
    """The mask of a triangle."""
    ones = xp.ones((n, n), bool)
    return xp.tril(ones) if uplo == "lower" else xp.triu(ones)


def whole(xp, a, uplo, hermitian):
    """A symmetric or Hermitian matrix by its half."""
    kept = xp.where(half(xp, len(a), uplo), a, 0)
    diagonal = xp.diag(xp.diag(kept).real if hermitian else xp.diag(kept))
    rest = kept - xp.diag(xp.diag(kept))
    return rest + (rest.conj().T if hermitian else rest.T) + diagonal


def triangle(xp, a, uplo, diagonal):
    kept = xp.where(half(xp, len(a), uplo), a, 0)
    return kept - xp.diag(xp.diag(kept)) + xp.eye(len(a)) if diagonal == "unit" else kept


def packed_places(xp, n, uplo):
    """Rows and columns of a packed matrix's elements, column by column."""
    pairs = [(i, j) for j in range(n) for i in (range(j, n) if uplo == "lower" else range(j + 1))]
    rows, columns = zip(*pairs)
    return xp.array(rows), xp.array(columns)


def unpacked(xp, flat, n, uplo):
    a = xp.zeros((n, n), flat.dtype)
    a[packed_places(xp, n, uplo)] = flat[: n * (n + 1) // 2]
    return a


def from_band(xp, a, rows, columns, below, above):
    """The matrix of which row above + i - j of `a` holds the elements (i, j)."""
    full = xp.zeros((rows, columns), a.dtype)
    for j in range(columns):
        for i in range(max(0, j - above), min(rows, j + below + 1)):
            full[i, j] = a[above + i - j, j]
    return full


def exchanged(rows, pivots, first=0, backward=False):
    """Each row, from the first on, is exchanged with the one that its pivot names."""
    pairs = list(enumerate((int(pivot) for pivot in pivots), first))
    for row, pivot in reversed(pairs) if backward else pairs:
        if 0 <= pivot < len(rows):
            rows[[row, pivot]] = rows[[pivot, row]]
    return rows


def product_of_factors(xp, factors, pivots):
    """P L U by the factors and pivots (from 0 on) of getrf, and L."""
    m, n = factors.shape
    k = min(m, n)
    lower = xp.tril(factors[:, :k], -1) + xp.eye(m, k)
    return exchanged(lower @ xp.triu(factors[:k]), pivots, backward=True), lower
