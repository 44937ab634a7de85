"""Numbers that the primitives are tried on, and what becomes of an array."""

import numpy as np

from case import NAMES, Case, narrow, widen

INTEGERS = ["i32", "i64", "u32", "u64"]
NUMBERS = ["f32", "f64"] + INTEGERS
NARROW = ["f16", "bf16"]  # here they are float32 arrays that hold numbers of these types
REDUCTIONS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
              "bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
REAL_REDUCTIONS = ["sum", "product", "min", "max"]


def as_stored(values, dtype):
    """Rounded to what f16 or bf16 can hold; other numbers as they are."""
    if dtype not in NARROW:
        return values
    with np.errstate(over="ignore"):
        return widen(narrow(values, dtype), dtype).astype(np.float32)


def kind_of(dtype):
    return np.float32 if dtype in NARROW else NAMES[dtype]


def length(random):
    return int(random.choice([1, 2, 31, 32, 33, 257, 1000, 5000]))


def elements(random, dtype, count, distinct=None):
    """Any numbers of the type, or few different ones."""
    kind = kind_of(dtype)
    if dtype in INTEGERS:
        limits = np.iinfo(kind)
        values = random.integers(limits.min, limits.max, count, kind, endpoint=True)
    else:
        values = as_stored(random.normal(size=count).astype(kind), dtype)
    return values if distinct is None else values[random.integers(0, min(distinct, count), count)] if count else values


def spoilt(random, x):
    """Now and then with infinities and NaN in it."""
    if x.dtype.kind != "f" or not len(x) or random.integers(2):
        return x
    special = [[np.inf], [-np.inf], [np.nan], [np.inf, -np.inf, np.nan]][random.integers(4)]
    x = x.copy()
    x[random.integers(0, len(x), 3)] = random.choice(special, 3)
    return x


def combined(name, values):
    """As the type itself combines them: integers modulo their range."""
    with np.errstate(over="ignore", invalid="ignore"):
        return REDUCTIONS[name].reduce(values, dtype=values.dtype)


def reductions_of(dtype):
    return list(REDUCTIONS) if dtype in INTEGERS else REAL_REDUCTIONS


def wide(values):
    """What is computed with: integers as they are, others in double precision."""
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def near_one(random, dtype, count):
    """Numbers whose products stay in the range of the type."""
    values = random.choice([-1, 1], count) * (1 + random.normal(size=count) / 100)
    return as_stored(values.astype(kind_of(dtype)), dtype)


def operands(random, dtype, count, reduction):
    return near_one(random, dtype, count) if reduction == "product" and dtype not in INTEGERS else \
        elements(random, dtype, count)


def made(xp, random, name, call, dtype, **arguments):
    return Case(xp, random, f"primitives.{name}", call, dtype, **arguments)


def result(case, name, values, dtype=None, room=0, terms=0):
    """An array that becomes `values`, exactly if they are sums of no `terms`; `room` elements behind them do not
    change."""
    dtype = dtype or case.dtype
    stored = case.random.integers(1, 100, len(values) + room).astype(NAMES[dtype])
    case.add(name, stored, dtype)
    flat = case.host(case.flat(name)).copy()
    flat[: len(values)] = values
    case.expect_flat(name, flat, terms)
    if terms == 0:
        case.expected[-1] = (name, flat, 0)


def becomes(case, x, name, values, terms=0):
    """The array `name` becomes `values`, or the array `x` does, where the call may work in place and does."""
    if case.random.integers(2):
        case.arguments["in_place"] = True
        flat = np.asarray(values).astype(case.host(case.flat(x)).dtype)
        case.expect_flat(x, flat, terms)
        if terms == 0:
            case.expected[-1] = (x, flat, 0)
    else:
        result(case, name, values, case.arrays[x][1], terms=terms)


def held(case, ranges, count, dtypes):
    """Ranges that take what is found: they have room for it, and more, or lack some, which the call reports."""
    spare = int(case.random.choice([0, 3, -1]))
    if spare < 0:
        case.arguments["report"] = True
    for (name, values), dtype in zip(ranges.items(), dtypes):
        result(case, name, values if spare >= 0 else values[: max(0, count - 1)], dtype, max(0, spare), 0)


def counted(case, count):
    case.add("count", [-1], "i64")
    case.expect_flat("count", np.array([count], np.int64))


def terms_of(name, count):
    """How many numbers are added or multiplied: the smallest and the largest are exact."""
    return 0 if name in ("min", "max") else count


def neutral(name, dtype):
    """What a reduction gives of no elements."""
    if name in ("sum", "bit_or", "bit_xor", "product"):
        return int(name == "product")
    if dtype not in INTEGERS:
        return np.inf if name == "min" else -np.inf
    limits = np.iinfo(NAMES[dtype])
    if name == "bit_and":
        return -1 if limits.min else limits.max
    return limits.max if name == "min" else limits.min
