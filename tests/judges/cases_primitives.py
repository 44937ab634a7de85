"""Sorting, reductions, scans and selections, by NumPy or CuPy."""

import numpy as np

from case import NAMES, Case

NOT_JUDGED = {}
INTEGERS = ["i32", "i64", "u32", "u64"]
NUMBERS = ["f32", "f64"] + INTEGERS
REDUCTIONS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
              "bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}


def length(random):
    return int(random.choice([1, 2, 31, 32, 33, 257, 1000, 5000]))


def elements(random, dtype, count, distinct=None):
    """Any numbers of the type, or few different ones."""
    kind = NAMES[dtype]
    if dtype in INTEGERS:
        limits = np.iinfo(kind)
        values = random.integers(limits.min, limits.max, count, kind, endpoint=True)
    else:
        values = random.normal(size=count).astype(kind)
    return values if distinct is None else values[random.integers(0, min(distinct, count), count)] if count else values


def combined(name, values):
    """As the type itself combines them: integers modulo their range."""
    with np.errstate(over="ignore"):
        return REDUCTIONS[name].reduce(values, dtype=values.dtype)


def made(xp, random, name, call, dtype, **arguments):
    return Case(xp, random, f"primitives.{name}", call, dtype, **arguments)


def result(case, name, values, dtype=None, room=0, terms=1):
    """An array that becomes `values`; `room` elements behind them do not change."""
    dtype = dtype or case.dtype
    stored = case.random.integers(1, 100, len(values) + room).astype(NAMES[dtype])
    case.add(name, stored, dtype)
    flat = case.host(case.flat(name)).copy()
    flat[: len(values)] = values
    case.expect_flat(name, flat, terms)


def counted(case, count):
    case.add("count", [-1], "i64")
    case.expect_flat("count", np.array([count], np.int64))


def starts(x):
    """Where runs of equal elements begin."""
    return np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]])) if len(x) else np.zeros(0, np.int64)


def sorts(xp, random, dtype):
    n = length(random)
    for call in ("sort", "sort_pairs"):
        case = made(xp, random, "sort", call, dtype)
        keys = elements(random, dtype, n, random.choice([None, 7]))
        # Stable in both orders: what is last of equal keys comes first if everything is turned twice.
        if case.choose("order", ["ascending", "descending"]) == "ascending":
            order = np.argsort(keys, kind="stable")
        else:
            order = (n - 1 - np.argsort(keys[::-1], kind="stable"))[::-1]
        case.add("keys", keys)
        result(case, "sorted", keys[order])
        if call == "sort_pairs":
            values = elements(random, "i64", n)
            case.add("values", values, "i64")
            result(case, "sorted_values", values[order], "i64")
        yield case


def reductions(xp, random, dtype):
    names = list(REDUCTIONS) if dtype in INTEGERS else ["sum", "product", "min", "max"]
    for name in names:
        n = length(random) if name != "product" or dtype in INTEGERS else 31
        x = elements(random, dtype, n)
        case = made(xp, random, "reduce", "reduce", dtype, reduction=name)
        case.add("x", x)
        wide = x if dtype in INTEGERS else x.astype(np.float64)
        result(case, "result", [combined(name, wide)], terms=n)
        yield case
    for name in ("sum", "min", "max"):
        n = length(random)
        x = elements(random, dtype, n)
        offsets = np.sort(np.concatenate([[0, n], random.integers(0, n + 1, int(random.integers(0, 40)))]))
        case = made(xp, random, "segmented_reduce", "segmented_reduce", dtype, reduction=name)
        case.add("x", x), case.add("offsets", offsets, "i64")
        wide = x if dtype in INTEGERS else x.astype(np.float64)
        empty = combined_of_none(name, dtype)
        result(case, "result", [combined(name, wide[a:b]) if b > a else empty for a, b in zip(offsets, offsets[1:])],
               terms=n)
        yield case
    for name in ("min", "max"):
        n = length(random)
        x = elements(random, dtype, n, 5)
        place = int(np.argmin(x) if name == "min" else np.argmax(x))
        case = made(xp, random, "arg_reduce", "arg_reduce", dtype, extreme=name)
        case.add("x", x)
        result(case, "value", [x[place]]), result(case, "index", [place], "i64")
        yield case


def combined_of_none(name, dtype):
    if name == "sum":
        return 0
    if dtype in INTEGERS:
        limits = np.iinfo(NAMES[dtype])
        return limits.max if name == "min" else limits.min
    return np.inf if name == "min" else -np.inf


def selections(xp, random, dtype):
    n = length(random)
    x = elements(random, dtype, n, random.choice([None, 3]))
    flags = random.integers(0, 2, n).astype(np.uint8)
    case = made(xp, random, "select_flagged", "select_flagged", dtype)
    case.add("x", x), case.add("flags", flags, "u8")
    result(case, "selected", x[flags != 0], room=int(np.sum(flags == 0)) + 3)
    counted(case, int(np.sum(flags != 0)))
    yield case

    case = made(xp, random, "partition_flagged", "partition_flagged", dtype)
    case.add("x", x), case.add("flags", flags, "u8")
    result(case, "y", np.concatenate([x[flags != 0], x[flags == 0][::-1]]))
    counted(case, int(np.sum(flags != 0)))
    yield case

    case = made(xp, random, "unique", "unique", dtype)
    case.add("x", x)
    result(case, "selected", x[starts(x)], room=n)
    counted(case, len(starts(x)))
    yield case

    sparse = np.where(flags, x, 0).astype(x.dtype)
    places = np.flatnonzero(sparse)
    case = made(xp, random, "select_nonzero", "select_nonzero", dtype)
    case.add("x", sparse)
    result(case, "selected", np.concatenate([places, np.full(n + 1 - len(places), -1)]), "i64")
    counted(case, len(places))
    yield case


def runs(xp, random, dtype):
    n = length(random)
    x = np.repeat(elements(random, dtype, n, 4), random.integers(1, 9, n))[:n]
    begin = starts(x)
    ends = np.append(begin[1:], n)
    case = made(xp, random, "run_length_encode", "run_length_encode", dtype)
    case.add("x", x)
    result(case, "values", x[begin], room=2), result(case, "lengths", ends - begin, "i64", room=2)
    counted(case, len(begin))
    yield case

    case = made(xp, random, "reduce_by_key", "reduce_by_key", dtype)
    name = case.choose("reduction", list(REDUCTIONS))
    weights = elements(random, "i64", n)
    case.add("x", x), case.add("weights", weights, "i64")
    result(case, "values", x[begin], room=2)
    result(case, "results", [combined(name, weights[a:b]) for a, b in zip(begin, ends)], "i64", room=2)
    counted(case, len(begin))
    yield case


def scans(xp, random, dtype):
    n = length(random)
    x = elements(random, dtype, n)
    case = made(xp, random, "scan", "scan", dtype)
    case.add("x", x)
    sums = np.cumsum(x, dtype=x.dtype)
    if case.choose("scanning", ["inclusive", "exclusive"]) == "exclusive":
        sums = np.concatenate([np.zeros(1, x.dtype), sums[:-1]])
    result(case, "y", sums)
    yield case


def cases(xp, random, rounds):
    for _ in range(rounds):
        for dtype in NUMBERS:
            for family in (sorts, reductions, selections, runs):
                yield from family(xp, random, dtype)
        for dtype in INTEGERS:
            yield from scans(xp, random, dtype)
