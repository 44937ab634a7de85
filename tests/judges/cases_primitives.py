"""Sorting, reductions, scans and selections, by NumPy or CuPy."""

import numpy as np

from case import NAMES, Case

NOT_JUDGED = {}
INTEGERS = ["i32", "i64", "u32", "u64"]
NUMBERS = ["f32", "f64"] + INTEGERS
REDUCTIONS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
              "bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
REAL_REDUCTIONS = ["sum", "product", "min", "max"]
# Bytes of each element that can be copied.
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "u8": 1, "i32": 4, "u32": 4,
         "i64": 8, "u64": 8, "c64": 8, "c128": 16, "i16": 2, "u16": 2, "f4e2m1x2": 1, "i4x2": 1, "ue4m3": 1, "ue8m0": 1}


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


def reductions_of(dtype):
    return list(REDUCTIONS) if dtype in INTEGERS else REAL_REDUCTIONS


def wide(values):
    """What is computed with: integers as they are, others in double precision."""
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def near_one(random, dtype, count):
    """Numbers whose products stay in the range of the type."""
    return (random.choice([-1, 1], count) * (1 + random.normal(size=count) / 100)).astype(NAMES[dtype])


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


def starts(x):
    """Where runs of equal elements begin."""
    return np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]])) if len(x) else np.zeros(0, np.int64)


def order_of(case, keys):
    """The places of the keys once they are sorted; equal ones stay in their order."""
    if case.arguments.get("order") == "ascending":
        return np.argsort(keys, kind="stable")
    # What is last of equal keys comes first if everything is turned twice.
    return (len(keys) - 1 - np.argsort(keys[::-1], kind="stable"))[::-1]


def some_bits(case, keys):
    """Asks for some of the bits alone, and gives what they are."""
    bits = 8 * keys.itemsize
    begin = int(case.random.integers(0, bits))
    end = int(case.random.integers(begin + 1, bits + 1))
    case.arguments["bits"] = [begin, 0 if end == bits else end]
    unsigned = keys.view(f"u{keys.itemsize}").astype(np.uint64)
    if keys.dtype.kind == "i":
        unsigned ^= np.uint64(1 << (bits - 1))
    return unsigned >> np.uint64(begin) & np.uint64((1 << (end - begin)) - 1)


def values_of_keys(case, count):
    """Values of 4 or 8 bytes, and their dtype."""
    dtype = case.choose("value_dtype", ["u32", "i64"])
    return elements(case.random, dtype, count), dtype


def sorts(xp, random, dtype):
    n = length(random)
    for call in ("sort", "sort_pairs", "segmented_sort", "segmented_sort_pairs"):
        case = made(xp, random, call.removesuffix("_pairs"), call, dtype)
        keys = elements(random, dtype, n, random.choice([None, 7]))
        case.choose("order", ["ascending", "descending"])
        case.add("keys", keys)
        if call.startswith("segmented"):
            # Keys outside of all segments stay; offsets count as though they were within the keys.
            offsets = np.sort(random.integers(-3, n + 4, int(random.choice([1, 2, 5, 40]))))
            case.add("offsets", offsets, "i64")
            within, order = np.clip(offsets, 0, n), np.arange(n)
            for begin, end in zip(within, within[1:]):
                order[begin:end] = begin + order_of(case, keys[begin:end])
        else:
            partly = dtype in INTEGERS and random.integers(2)
            order = order_of(case, some_bits(case, keys) if partly else keys)
        result(case, "sorted", keys[order])
        if call.endswith("pairs"):
            values, value_dtype = values_of_keys(case, n)
            case.add("values", values, value_dtype)
            result(case, "sorted_values", values[order], value_dtype)
        yield case


def merges(xp, random, dtype):
    for call in ("merge", "merge_pairs"):
        case = made(xp, random, "merge", call, dtype)
        keys = elements(random, dtype, length(random) + 1, random.choice([None, 7]))
        case.choose("order", ["ascending", "descending"])
        n_a = int(random.integers(0, len(keys) + 1))
        a, b = (part[order_of(case, part)] for part in (keys[:n_a], keys[n_a:]))
        both = np.concatenate([a, b])
        order = order_of(case, both)
        case.add("a", a), case.add("b", b)
        result(case, "merged", both[order])
        if call == "merge_pairs":
            values, value_dtype = values_of_keys(case, len(both))
            case.add("values_a", values[:n_a], value_dtype), case.add("values_b", values[n_a:], value_dtype)
            result(case, "merged_values", values[order], value_dtype)
        yield case


def reductions(xp, random, dtype):
    for name in reductions_of(dtype):
        n = length(random)
        x = operands(random, dtype, n, name)
        case = made(xp, random, "reduce", "reduce", dtype, reduction=name)
        case.add("x", x)
        result(case, "result", [combined(name, wide(x))], terms=terms_of(name, n))
        yield case

        x = operands(random, dtype, n, name)
        case = made(xp, random, "transform_reduce", "transform_reduce", dtype, reduction=name)
        made_of = unary(case, x, tame=True)
        result(case, "result", [combined(name, wide(made_of))], terms=2 * n)
        yield case
    for name in ("sum", "min", "max"):
        n = length(random)
        x = elements(random, dtype, n)
        offsets = np.sort(np.concatenate([[0, n], random.integers(0, n + 1, int(random.integers(0, 40)))]))
        case = made(xp, random, "segmented_reduce", "segmented_reduce", dtype, reduction=name)
        case.add("x", x), case.add("offsets", offsets, "i64")
        empty = neutral(name, dtype)
        result(case, "result", [combined(name, wide(x[a:b])) if b > a else empty for a, b in zip(offsets, offsets[1:])],
               terms=terms_of(name, n))
        yield case
    for name in ("min", "max"):
        n = length(random)
        x = elements(random, dtype, n, 5)
        place = int(np.argmin(x) if name == "min" else np.argmax(x))
        case = made(xp, random, "arg_reduce", "arg_reduce", dtype, extreme=name)
        case.add("x", x)
        result(case, "value", [x[place]]), result(case, "index", [place], "i64")
        yield case


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

    second_flags = random.integers(0, 2, n).astype(np.uint8)
    where = np.where(flags, 0, np.where(second_flags, 1, 2))
    case = made(xp, random, "partition_three_way", "partition_three_way", dtype)
    case.add("x", x), case.add("first_flags", flags, "u8"), case.add("second_flags", second_flags, "u8")
    for part, name in enumerate(("first", "second", "rest")):
        held(case, {name: x[where == part]}, int(np.sum(where == part)), [dtype])
    case.add("counts", [-1, -1], "i64")
    case.expect_flat("counts", np.array([np.sum(where == 0), np.sum(where == 1)]))
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

    lengths = ends - begin
    several = lengths > 1
    case = made(xp, random, "non_trivial_runs", "non_trivial_runs", dtype)
    case.add("x", x)
    held(case, {"offsets": begin[several], "lengths": lengths[several]}, int(several.sum()), ["i64", "i64"])
    counted(case, int(several.sum()))
    yield case

    case = made(xp, random, "unique_by_key", "unique_by_key", dtype)
    values, value_dtype = values_of_keys(case, n)
    case.add("keys", x), case.add("values", values, value_dtype)
    held(case, {"unique_keys": x[begin], "first_values": values[begin]}, len(begin), [dtype, value_dtype])
    counted(case, len(begin))
    yield case


def scanned(case, name, x, first):
    """x combined up to each place, from `first` on."""
    with np.errstate(over="ignore"):
        chain = REDUCTIONS[name].accumulate(np.concatenate([np.array([first]).astype(x.dtype), x]), dtype=x.dtype)
    return chain[1:] if case.arguments["scanning"] == "inclusive" else chain[:-1]


def first_of(case, name, dtype):
    """What a scan begins with: a number that the request has, or what the reduction gives of no elements."""
    if case.random.integers(2):
        return neutral(name, dtype)
    case.arguments["initial"] = operands(case.random, dtype, 1, name)[0].item()
    return case.arguments["initial"]


def scans(xp, random, dtype):
    for name in reductions_of(dtype):
        n = length(random)
        x = operands(random, dtype, n, name)
        case = made(xp, random, "scan", "scan", dtype, reduction=name)
        case.choose("scanning", ["inclusive", "exclusive"])
        case.add("x", x)
        becomes(case, "x", "y", scanned(case, name, wide(x), first_of(case, name, dtype)), terms_of(name, n))
        yield case

    for value_dtype in NUMBERS:
        n = length(random)
        keys = np.repeat(elements(random, dtype, n, 4), random.integers(1, 9, n))[:n]
        case = made(xp, random, "scan_by_key", "scan_by_key", dtype, value_dtype=value_dtype)
        name = case.choose("reduction", reductions_of(value_dtype))
        case.choose("scanning", ["inclusive", "exclusive"])
        x = operands(random, value_dtype, n, name)
        case.add("keys", keys), case.add("x", x, value_dtype)
        first, begin = first_of(case, name, value_dtype), starts(keys)
        parts = [scanned(case, name, wide(x[a:b]), first) for a, b in zip(begin, np.append(begin[1:], n))]
        becomes(case, "x", "y", np.concatenate(parts), terms_of(name, n))
        yield case


UNARY = {"negate": np.negative, "absolute": np.abs, "square": np.square, "square_root": np.sqrt,
         "reciprocal": lambda x: x.dtype.type(1) / x, "bit_not": np.invert}
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum,
          "bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor,
          # Integers are cut, and divided by nothing they are nothing.
          "divide": lambda x, y: x / y if x.dtype.kind == "f" else
          np.where(y == 0, 0, (x - np.fmod(x, np.where(y == 0, 1, y))) // np.where(y == 0, 1, y)).astype(x.dtype)}


def unary(case, x, tame=False):
    """Chooses an operator, adds its operand, and gives its results as the type itself computes them. `tame`: they are
    neither very large nor very small."""
    integers = case.dtype in INTEGERS
    name = case.choose("op", [name for name in UNARY if name not in
                              (("square_root", "reciprocal") if integers else ("bit_not",))])
    if name == "square_root":
        x = np.abs(x)
    if name == "reciprocal" and tame:
        x = (np.sign(x) * (np.abs(x) / 2 + 0.5)).astype(x.dtype)
        if case.arguments.get("reduction") == "product":
            x = np.copysign(near_one(case.random, case.dtype, len(x)), x)
    case.add("x", x)
    with np.errstate(all="ignore"):
        return UNARY[name](x)


def transforms(xp, random, dtype):
    n = length(random)
    case = made(xp, random, "transform", "transform", dtype)
    made_of = unary(case, elements(random, dtype, n))
    becomes(case, "x", "y", made_of)
    yield case

    for op in BINARY:
        if op.startswith("bit_") and dtype not in INTEGERS:
            continue
        case = made(xp, random, "transform_pairs", "transform_pairs", dtype, op=op)
        x, y = elements(random, dtype, n), elements(random, dtype, n)
        if dtype in INTEGERS:
            special = np.array([0, 1, -1, 3, np.iinfo(x.dtype).min]).astype(x.dtype)
            x, y = (np.where(random.integers(0, 2, n), part, random.choice(special, n)) for part in (x, y))
        case.add("x", x), case.add("y", y)
        with np.errstate(all="ignore"):
            becomes(case, "x", "z", BINARY[op](x, y))
        yield case

    case = made(xp, random, "adjacent_difference", "adjacent_difference", dtype)
    x = elements(random, dtype, n)
    case.add("x", x)
    with np.errstate(over="ignore"):
        if case.choose("neighbour", ["left", "right"]) == "left":
            differences = np.concatenate([x[:1], x[1:] - x[:-1]])
        else:
            differences = np.concatenate([x[:-1] - x[1:], x[-1:]])
    becomes(case, "x", "y", differences)
    yield case


def converted(x, dtype):
    """As numbers of another type: what is beyond the range of integers is the nearest of them, a NaN is 0."""
    kind = NAMES[dtype]
    if x.dtype.kind != "f" or dtype not in INTEGERS:
        with np.errstate(over="ignore"):
            return x.astype(kind)
    limits = np.iinfo(kind)

    def cut(value):
        if np.isnan(value):
            return 0
        if np.isinf(value):
            return limits.max if value > 0 else limits.min
        return min(max(int(value), limits.min), limits.max)

    return np.array([cut(value) for value in x], kind)


def conversions(xp, random, dtype):
    for y_dtype in NUMBERS:
        n = length(random)
        x = elements(random, dtype, n)
        if dtype not in INTEGERS:
            with np.errstate(over="ignore"):
                x = x * x.dtype.type(10) ** random.choice([0, 2, 9, 18, 25], n).astype(x.dtype)
            special = [np.inf, -np.inf] + ([np.nan] if y_dtype in INTEGERS else [])
            x = np.where(random.integers(0, 9, n) == 0, random.choice(special, n), x).astype(x.dtype)
        case = made(xp, random, "convert", "convert", dtype, y_dtype=y_dtype)
        case.add("x", x)
        result(case, "y", converted(x, y_dtype), y_dtype)
        yield case


def levels_and_samples(random, dtype, count, level_count):
    """Ascending levels, and samples that lie in their bins, on the levels and outside."""
    kind = NAMES[dtype]
    if dtype not in INTEGERS + ["u8"]:
        levels = np.unique(random.normal(size=level_count).astype(kind))
        special = np.array([np.inf, -np.inf, np.nan], kind)
        samples = np.concatenate([random.normal(size=count).astype(kind), special, levels])
    else:
        limits = np.iinfo(kind)
        width = int(random.choice([200, min(2**40, limits.max)]))
        width = min(width, limits.max // 2)
        base = [limits.min, limits.max - 2 * width, limits.max // 2 - width // 2][random.integers(3)]
        levels = np.unique(random.integers(base, base + width, level_count, NAMES["i32"] if dtype == "u8" else kind,
                                           endpoint=True))
        samples = random.integers(max(limits.min, base - width // 8), min(limits.max, base + width + width // 8),
                                  count, kind, endpoint=True)
        samples = np.concatenate([samples, levels.astype(kind)])
    return levels, random.choice(samples, count)


def even_bins(x, lower, upper, bins):
    """The bin of each sample, or -1."""
    if x.dtype.kind == "f":  # in the samples' own precision, as CUB has it
        scale = x.dtype.type(bins) / (upper - lower)
        return [min(int((v - lower) * scale), bins - 1) if lower <= v < upper else -1 for v in x]
    lower, upper = int(lower), int(upper)
    return [(v - lower) * bins // (upper - lower) if lower <= v < upper else -1 for v in x.tolist()]


def histograms(xp, random, dtype):
    level_dtype = "i32" if dtype == "u8" else dtype
    for call in ("histogram_even", "histogram_range"):
        every = int(random.integers(1, 5))
        channels = [every, int(random.integers(1, every + 1))]
        case = made(xp, random, call, call, dtype, channels=channels)
        count_dtype = case.choose("count_dtype", ["u32", "u64"])
        levels, x = levels_and_samples(random, dtype, length(random) * every, int(random.choice([2, 3, 17, 300])))
        if len(levels) < 2:
            levels = np.array([levels[0], levels[0] + 1], levels.dtype)
        case.add("x", x)
        if call == "histogram_even":
            bins = int(random.choice([1, 2, 7, 256, 1000]))
            case.arguments.update(lower=levels[0].item(), upper=levels[-1].item())
            found = np.array(even_bins(x, levels[0], levels[-1], bins))
        else:
            bins = len(levels) - 1
            case.add("levels", levels, level_dtype)
            found = np.searchsorted(levels, x, side="right") - 1
            found = np.where((found >= 0) & (found < bins), found, -1)
        of_channels = found.reshape(-1, every)[:, : channels[1]].T
        result(case, "counts", np.concatenate([np.bincount(one[one >= 0], minlength=bins) for one in of_channels]),
               count_dtype)
        yield case


def copied(case):
    expected = case.bytes_of("to", case.arrays["to"][0]).copy()
    source = case.bytes_of("from", case.arrays["from"][0])
    for start, destination, count in case.arguments["parts"]:
        expected[destination : destination + count] = source[start : start + count]
    yield "elements that are wrong", np.sum(np.any(case.bytes_of("to", case.results["to"]) != expected, axis=1)), 0


class CopyCase(Case):
    """Elements are bytes here, whatever they mean."""

    def bytes_of(self, name, stored):
        return np.frombuffer(stored.tobytes(), np.uint8).reshape(-1, SIZES[self.dtype])

    def add_elements(self, name, count):
        kind = np.dtype(f"V{SIZES[self.dtype]}")
        stored = np.frombuffer(self.random.bytes(count * kind.itemsize), kind)
        self.arrays[name] = (stored, self.dtype, {})


def copies(xp, random, dtype):
    case = CopyCase(xp, random, "primitives.copy_batched", "copy_batched", dtype)
    counts = random.choice([0, 1, 3, 32, 257], int(random.choice([1, 2, 17, 300])))
    counts[0] = 100
    size = int(counts.sum()) + 7
    begin = np.cumsum(counts) - counts + random.integers(0, 7)
    parts = [[int(random.integers(0, size - count + 1)), int(at), int(count)] for at, count in zip(begin, counts)]
    case.arguments["parts"] = [parts[i] for i in random.permutation(len(parts))]
    case.add_elements("from", size), case.add_elements("to", size)
    case.checks.append(copied)
    yield case


def cases(xp, random, rounds):
    for _ in range(rounds):
        for dtype in NUMBERS:
            for family in (sorts, merges, reductions, selections, runs, scans, transforms, conversions, histograms):
                yield from family(xp, random, dtype)
        yield from histograms(xp, random, "u8")
        for dtype in SIZES:
            yield from copies(xp, random, dtype)
