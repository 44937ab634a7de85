"""A call of troupe's, its operands, and what another library says must come of it."""

import numpy as np

NAMES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128, "f16": np.float16,
         "bf16": np.uint16, "i8": np.int8, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u32": np.uint32,
         "u64": np.uint64, "f8e4m3": np.uint8, "f8e5m2": np.uint8}
NUMBERS = ["f32", "f64", "c64", "c128"]
EPSILON = {"f8e4m3": 2.0**-3, "f8e5m2": 2.0**-2, "f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "c64": 2.0**-23,
           "f64": 2.0**-52, "c128": 2.0**-52}


def is_complex(dtype):
    return dtype in ("c64", "c128")


def real_of(dtype):
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def eighths(dtype):
    """What the bytes of a format of 8 bits mean (https://arxiv.org/abs/2209.05433)."""
    mantissa, bias = (3, 7) if dtype == "f8e4m3" else (2, 15)
    codes = np.arange(256)
    exponent, fraction = (codes >> mantissa) & ((1 << (7 - mantissa)) - 1), codes & ((1 << mantissa) - 1)
    normal = exponent > 0
    size = np.where(normal, 2.0 ** (exponent - bias), 2.0 ** (1 - bias)) * (normal + fraction / 2.0**mantissa)
    size[(codes & 0x7F) >= (0x7F if dtype == "f8e4m3" else 0x7C)] = np.nan
    return np.where(codes >= 128, -size, size)


def narrow(values, dtype):
    """Numbers as they are stored: bf16 and formats of 8 bits as bits, rounded to nearest; bf16 with ties to even."""
    if dtype.startswith("f8"):
        table = np.nan_to_num(eighths(dtype), nan=np.inf)
        return np.argmin(np.abs(np.asarray(values)[..., None] - table), axis=-1).astype(np.uint8)
    if dtype != "bf16":
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(NAMES[dtype])
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widen(stored, dtype):
    """In double precision; integers are as they are."""
    if dtype.startswith("f8"):
        return eighths(dtype)[stored]
    if dtype == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in EPSILON:
        return stored.astype(np.complex128 if is_complex(dtype) else np.float64)
    return stored


#: the largest finite number of a format; what is larger is stored as infinity
LARGEST = {"f16": 65504.0, "bf16": (2 - 2.0**-7) * 2.0**127, "f32": (2 - 2.0**-23) * 2.0**127,
           "c64": (2 - 2.0**-23) * 2.0**127}


def representable(values, dtype):
    """Numbers as a format can hold them: infinite where they are too large for it."""
    if dtype not in LARGEST:
        return values
    limit = LARGEST[dtype] * (1 + EPSILON[dtype] / 4)  # half of the way to the next one is rounded up
    flat = np.array(values).reshape(-1)
    for part in [flat.real, flat.imag] if np.iscomplexobj(flat) else [flat]:
        part[part >= limit], part[part <= -limit] = np.inf, -np.inf
    return flat.reshape(np.shape(values))


def errors(values, wanted):
    """How far numbers are from those wanted. NaN equals NaN, and an infinity the infinity of its sign; where only one of
    the two is finite, or a number, they are infinitely far apart. A complex number with a NaN in either part is NaN."""
    values, wanted = np.asarray(values), np.asarray(wanted)
    if np.iscomplexobj(values) or np.iscomplexobj(wanted):
        apart = np.hypot(errors(values.real, wanted.real), errors(values.imag, wanted.imag))
    else:
        with np.errstate(invalid="ignore"):
            apart = np.where(values == wanted, 0.0, np.abs(values - wanted))
    apart = np.where(np.isnan(apart), np.inf, apart)
    return np.where(np.isnan(values) & np.isnan(wanted), 0.0, apart)


def weighed(factor, values):
    """The product as BLAS has it: what a factor of zero belongs to is not read."""
    return factor * values if factor != 0 else np.zeros_like(values)  # CuPy's for CuPy's


class Case:
    """`judge`: numpy or cupy, which computes what is expected, in double precision."""

    may_lack = False  # whether the cuda engine may answer that its library does not have the case
    unusual = ()  # numbers of which one may stand in each array, so that results are not finite

    def __init__(self, judge, random, operation, call, dtype, **arguments):
        self.xp, self.random = judge, random
        self.operation, self.call, self.dtype, self.arguments = operation, call, dtype, arguments
        self.table_dtype = dtype  # the dtype in which troupe-info lists the operation
        self.arrays = {}  # name: (stored numbers, their dtype, what the request says of them)
        self.expected = []  # (name, numbers, tolerance)
        self.checks = []  # functions of this case, once it has run: (what, error, tolerance)
        self.answer = "ok"

    def numbers(self, count, dtype=None):
        dtype = dtype or self.dtype
        if dtype == "i8":
            return self.random.integers(-9, 10, count)
        if dtype == "i32":
            return self.random.integers(-999, 1000, count)
        values = self.random.uniform(-1, 1, count)
        return values + 1j * self.random.uniform(-1, 1, count) if is_complex(dtype) else values

    def factor(self, name, values=(-1.5, 0.0, 1.0, 0.75), real=False):
        value = complex(self.random.choice(values))
        if is_complex(self.dtype) and not real and value not in (0, 1):
            value += 0.5j
        self.arguments[name] = [value.real, value.imag]
        return value if is_complex(self.dtype) and not real else value.real

    def choose(self, name, words):
        self.arguments[name] = str(self.random.choice(words))
        return self.arguments[name]

    def add(self, name, values, dtype=None, **spec):
        """An array of one dimension."""
        dtype = dtype or self.dtype
        self.arrays[name] = (narrow(values, dtype), dtype, spec)

    def disturb(self, name, i=0):
        """Puts one of the unusual numbers somewhere into the vector or matrix, or none."""
        view = self.view(name, self.arrays[name][0], i)
        if self.unusual and view.size and self.random.integers(2):
            place = tuple(int(self.random.integers(extent)) for extent in view.shape)
            view[place] = narrow(np.array(self.random.choice(self.unusual)), self.arrays[name][1])

    def matrix(self, name, rows, columns, values=None, dtype=None, leading=None):
        leading = leading or rows + int(self.random.choice([0, 0, 1, 4]))
        leading = max(1, leading)
        self.add(name, self.numbers(leading * columns, dtype), dtype, rows=rows, columns=columns, leading=leading)
        if values is not None:
            stored = self.arrays[name][0]
            self.view(name, stored)[...] = narrow(values, dtype or self.dtype)
        self.disturb(name)

    def view(self, name, flat, i=0):
        """The vector or matrix that lies in a flat array; of a list the i-th."""
        spec = self.arrays[name][2]
        if "increment" in spec:
            n, step = spec["length"], spec["increment"]
            return flat[: (n - 1) * abs(step) + 1 if n else 0][::step]
        if "rows" not in spec:
            return flat
        rows, columns, leading = spec["rows"], spec["columns"], spec["leading"]
        start = i * spec.get("stride", 0)
        return flat[start : start + leading * columns].reshape(columns, leading).T[:rows]

    def flat(self, name):
        """A copy of a whole array, in double precision, of the judge."""
        stored, dtype, _ = self.arrays[name]
        return self.xp.array(widen(stored, dtype))

    def get(self, name, i=0):
        return self.view(name, self.flat(name), i)

    def expect(self, name, value, terms=1, where=None, eps=None):
        """That the vector or matrix becomes `value`, a sum of so many products, and that nothing else of the array
        changes. `where`: a mask; the other elements stay as they are."""
        flat = self.flat(name)
        view = self.view(name, flat)
        view[...] = value if where is None else self.xp.where(where, value, view)
        self.expect_flat(name, flat, terms, eps)

    def expect_flat(self, name, flat, terms=1, eps=None):
        dtype = self.arrays[name][1]
        flat = self.host(flat)
        if dtype not in EPSILON:
            tolerance = 0
        else:
            largest = float(np.max(np.abs(flat[np.isfinite(flat)]), initial=1))
            tolerance = 4 * EPSILON[dtype] * largest + 16 * (eps or min(EPSILON[dtype], EPSILON["f32"])) * (terms + 2)
        self.expected.append((name, representable(flat, dtype), tolerance))

    def host(self, values):
        return values.get() if hasattr(values, "get") else np.asarray(values)

    def faults(self):
        """What is wrong with the answer, and with what the arrays hold now; `self.results` are those, stored."""
        if self.answer != "ok":
            return [self.answer]
        wrong = []
        for name, flat, tolerance in self.expected:
            before, dtype, _ = self.arrays[name]
            after = widen(self.results[name], dtype)
            wide = widen(before, dtype)
            untouched = errors(flat, wide) == 0
            if np.any(errors(after, wide)[untouched]):
                wrong.append(f"{name}: elements changed that must not")
            error = np.max(errors(after, flat)[~untouched], initial=0)
            if not error <= tolerance:
                wrong.append(f"{name}: off by {error:.3g}, more than {tolerance:.3g}")
        for check in self.checks:
            for what, error, tolerance in check(self):
                error = float(error)  # also where it is one number on a GPU
                if not error <= tolerance:
                    wrong.append(f"{what}: {error:.3g}, more than {tolerance:.3g}")
        return wrong

    def result(self, name, i=0):
        """What the vector or matrix is after the call."""
        dtype = self.arrays[name][1]
        return self.xp.array(self.view(name, widen(self.results[name], dtype), i))
