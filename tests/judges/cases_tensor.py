"""Tensors, judged by einsum and the arithmetic of NumPy or CuPy."""

import os

import numpy as np

from case import NUMBERS, Case, is_complex

NOT_JUDGED = {"tensor.tune_contract": "it measures, and computes nothing"}
DTYPES = ["f32", "f64", "c64", "c128", "f16", "bf16"]
CONTRACTIONS = ["mk,kn->mn", "km,nk->nm", "bmk,bkn->bmn", "abcd,cdkl->abkl", "k,k->", "i,j->ij", "ij,ji->ji",
                "akbc,kd->dabc", "mkl,lk->m"]
CHAINS = ["ij,jk,kl->il", "ia,jb,ab->ij", "bij,bjk,bkl->lbi", "i,ij,j->"]
SUMS = ["ijk->i", "ijk->ki", "ij->", "ijkl->jl"]
PERMUTATIONS = ["ijk->kji", "ij->ij", "ijkl->jlik", "j->kji"]
EINSUMS = ["ij->ji", "ii->i", "ii", "iji->j", "ij", "ij,jk", "ij,ij", "ij,kl->ik", "b,a", "ijk,kl->li", "ii,ik->k",
           "ab,bc,cd", "i,ij,j", "ab,bc,cde->ad", "abcd->db"]


class TensorCase(Case):
    """A call whose tensors lie in any order, with gaps or without. Now and then a mode has no elements, and numbers are
    not finite; `compares`: not where cuTENSOR would leave out a NaN."""

    def __init__(self, xp, random, operation, call, dtype, compares=False):
        super().__init__(xp, random, f"tensor.{operation}", call, dtype)
        self.extents = {letter: int(random.integers(2, 6)) for letter in "abcdeijklmn"}
        if random.integers(8) == 0:
            self.extents[str(random.choice(list("bijkm")))] = 0
        guarded = compares and os.environ.get("TROUPE_TEST_BACKEND") == "cuda"
        self.spoils = not is_complex(dtype) and not guarded and random.integers(4) == 0
        # Where sums are put together in another order, infinities meet that did not otherwise.
        products = call in ("einsum", "contract_trinary")
        # contract_trinary and CuPy's einsum multiply in pairs: a NaN comes through beside an empty sum of the others.
        if call == "contract_trinary" or xp.__name__ == "cupy":
            self.spoils = self.spoils and not (products and 0 in self.extents.values())
        self.specials = [np.nan] if products else [np.inf, -np.inf, np.nan]
        self.layouts = {}

    def tensor(self, name, modes, unary=("identity",), packed=False):
        """Adds a tensor, and says what its elements are once the operator has been applied."""
        extents = [self.extents[mode] for mode in modes]
        strides, gap = [0] * len(modes), 0 if packed else int(self.random.integers(0, 2))
        step = 1 + gap
        for i in reversed(range(len(modes))) if packed else self.random.permutation(len(modes)):
            strides[i] = int(step)
            step = step * extents[i] + gap
        self.layouts[name] = extents, strides
        self.arguments[f"{name}_layout"] = [extents, strides]
        self.arguments[f"{name}_modes"] = modes
        count = 3 if 0 in extents else 1 + sum((n - 1) * s for n, s in zip(extents, strides))
        values = self.numbers(count)
        if self.spoils:
            values[self.random.integers(count)] = self.random.choice(self.specials)
        self.add(name, values)
        word = self.choose(f"{name}_unary", unary)
        value = self.elements(name, self.flat(name))
        return {"identity": lambda: value, "conj": lambda: value.conj(), "neg": lambda: -value,
                "abs": lambda: abs(value)}[word]()

    def elements(self, name, flat):
        extents, strides = self.layouts[name]
        as_strided = self.xp.lib.stride_tricks.as_strided
        return as_strided(flat, extents, [stride * flat.itemsize for stride in strides])

    def expect_tensor(self, name, value, terms=1):
        flat = self.flat(name)
        self.elements(name, flat)[...] = value
        self.expect_flat(name, flat, terms)

    def terms(self, inputs, output):
        return int(np.prod([self.extents[mode] for mode in set("".join(inputs)) - set(output)]))


def simple(dtype):
    return ("identity", "conj") if is_complex(dtype) else ("identity",)


def functions(dtype):
    return ("identity", "conj") if is_complex(dtype) else ("identity", "neg", "abs")


def scaled(factor, value):
    """By 0 nothing is multiplied: what it belongs to is not read."""
    return factor * value if factor != 0 else 0


def combine(xp, word):
    return {"add": xp.add, "mul": xp.multiply, "max": xp.maximum, "min": xp.minimum}[word]


def words(dtype):
    return ["add", "mul"] if is_complex(dtype) else ["add", "mul", "max", "min"]


def contraction(xp, random, dtype, expression):
    inputs, output = expression.split("->")
    inputs = inputs.split(",")
    name, result = ("contract", "d") if len(inputs) == 2 else ("contract_trinary", "e")
    case = TensorCase(xp, random, name, name, dtype)
    values = [case.tensor("abc"[i], modes, simple(dtype)) for i, modes in enumerate(inputs)]
    added = case.tensor(result, output)
    alpha, beta = case.factor("alpha"), case.factor("beta")
    case.expect_tensor(result, scaled(alpha, xp.einsum(expression, *values)) + scaled(beta, added), case.terms(inputs, output))
    return case


def block_product(xp, random, dtype):
    """A product of matrices of which some blocks are stored."""
    case = Case(xp, random, "tensor.contract_block_sparse", "contract_block_sparse", dtype)
    cuts = {mode: [int(extent) for extent in random.integers(1, 5, random.integers(1, 4))] for mode in "mkn"}
    whole, stored = {}, {}
    for name, (mode, other) in (("a", "mk"), ("b", "kn"), ("d", "mn")):
        rows, columns = cuts[mode], cuts[other]
        places = [[i, j] for i in range(len(rows)) for j in range(len(columns)) if random.integers(3)] or [[0, 0]]
        tops, lefts = np.cumsum([0, *rows]), np.cumsum([0, *columns])
        stored[name] = [int(row * sum(columns) + column) for i, j in places
                        for row in range(tops[i], tops[i + 1]) for column in range(lefts[j], lefts[j + 1])]
        case.arguments[f"{name}_blocks"] = [[rows, columns], places]
        case.add(name, case.numbers(len(stored[name])))
        flat = xp.zeros(sum(rows) * sum(columns), case.flat(name).dtype)
        flat[xp.asarray(stored[name])] = case.flat(name)
        whole[name] = flat.reshape(sum(rows), sum(columns))
    alpha, beta = case.factor("alpha"), case.factor("beta")
    product = alpha * whole["a"] @ whole["b"] + beta * whole["d"]
    case.expect_flat("d", product.ravel()[xp.asarray(stored["d"])], sum(cuts["k"]))
    return case


def reduction(xp, random, dtype, expression):
    modes, output = expression.split("->")
    case = TensorCase(xp, random, "reduce", "reduce", dtype, compares=True)
    value, added = case.tensor("a", modes, simple(dtype)), case.tensor("d", output)
    # The largest of no elements is an error.
    word = case.choose("f", words(dtype) if 0 not in case.extents.values() else ["add", "mul"])
    alpha, beta = case.factor("alpha"), case.factor("beta")
    axes = tuple(i for i, mode in enumerate(modes) if mode not in output)
    reduced = {"add": xp.sum, "mul": xp.prod, "max": xp.max, "min": xp.min}[word](value, axis=axes)
    left = [mode for mode in modes if mode in output]
    reduced = xp.transpose(reduced, [left.index(mode) for mode in output])
    case.expect_tensor("d", scaled(alpha, reduced) + scaled(beta, added), case.terms([modes], output))
    return case


def spread(case, value, modes, output):
    """With an axis for each mode of the output, in its order."""
    value = case.xp.transpose(value, [modes.index(mode) for mode in output if mode in modes])
    return value.reshape([case.extents[mode] if mode in modes else 1 for mode in output])


def permutation(xp, random, dtype, expression):
    modes, output = expression.split("->")
    case = TensorCase(xp, random, "permute", "permute", dtype)
    value, _ = case.tensor("a", modes, functions(dtype)), case.tensor("b", output)
    case.expect_tensor("b", case.factor("alpha", (-1.5, 1.0, 0.75)) * spread(case, value, modes, output))
    return case


def elementwise(xp, random, dtype, inputs):
    output = "ijk"
    name = "elementwise_binary" if len(inputs) == 1 else "elementwise_trinary"
    case = TensorCase(xp, random, name, name, dtype, compares=True)
    factors = ["alpha", "beta"][: len(inputs)] + ["gamma"]
    values = [spread(case, case.tensor("ab"[i], modes, functions(dtype)), modes, output)
              for i, modes in enumerate(inputs)]
    values.append(case.tensor("d", output, functions(dtype)))
    values = [case.factor(factor, (-1.5, 1.0, 0.75)) * value for factor, value in zip(factors, values)]
    result = values[0]
    for word, value in zip("fg", values[1:]):
        result = combine(xp, case.choose(word, words(dtype)))(result, value)
    case.expect_tensor("d", result, 4)
    return case


def einsum(xp, random, dtype, expression):
    inputs = expression.split("->")[0].split(",")
    everything = "".join(inputs)
    output = expression.split("->")[1] if "->" in expression else "".join(
        sorted(mode for mode in set(everything) if everything.count(mode) == 1))
    # NumPy's scalar operands are arrays of no axes, as they are here.
    operation = ["contract", "contract_trinary"][len(inputs) - 2] if len(inputs) > 1 else "reduce"
    case = TensorCase(xp, random, operation, "einsum", dtype)
    case.arguments.update(subscripts=expression, operands=len(inputs))
    values = [case.tensor("abc"[i], modes, packed=True) for i, modes in enumerate(inputs)]
    case.tensor("out", output, packed=True)
    case.expect_tensor("out", xp.einsum(expression, *values), case.terms(inputs, output) * 4)
    return case


def cases(xp, random, rounds):
    for _ in range(rounds):
        for dtype in DTYPES:
            for expression in CONTRACTIONS + CHAINS:
                yield contraction(xp, random, dtype, expression)
            if dtype in NUMBERS:
                for _ in range(3):
                    yield block_product(xp, random, dtype)
            for expression in SUMS:
                yield reduction(xp, random, dtype, expression)
            for expression in PERMUTATIONS:
                yield permutation(xp, random, dtype, expression)
            for inputs in (["ik"], ["kji"], ["j", "ki"], ["ijk", "kij"]):
                yield elementwise(xp, random, dtype, inputs)
            for expression in EINSUMS:
                yield einsum(xp, random, dtype, expression)
