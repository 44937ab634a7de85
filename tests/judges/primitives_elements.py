"""What primitives make element by element, histograms and copies, by NumPy or CuPy."""

import numpy as np

from case import NAMES, Case
from primitives_values import (INTEGERS, NARROW, NUMBERS, as_stored, becomes, elements, length, made, near_one, result,
                               spoilt)

# Bytes of each element that can be copied.
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "u8": 1, "i32": 4, "u32": 4,
         "i64": 8, "u64": 8, "c64": 8, "c128": 16, "i16": 2, "u16": 2, "f4e2m1x2": 1, "i4x2": 1, "ue4m3": 1, "ue8m0": 1}

UNARY = {"negate": np.negative, "absolute": np.abs, "square": np.square, "square_root": np.sqrt,
         "reciprocal": lambda x: x.dtype.type(1) / x, "bit_not": np.invert}
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum,
          "bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor,
          # Integers are cut, and divided by nothing they are nothing.
          "divide": lambda x, y: x / y if x.dtype.kind == "f" else
          np.where(y == 0, 0, (x - np.fmod(x, np.where(y == 0, 1, y))) // np.where(y == 0, 1, y)).astype(x.dtype)}


def unary(case, x, tame=False):
    """Chooses an operator, adds its operand, and gives its results as the type itself computes them, those of f16
    and bf16 in f32. `tame`: they are neither very large nor very small."""
    integers = case.dtype in INTEGERS
    name = case.choose("op", [name for name in UNARY if name not in
                              (("square_root", "reciprocal") if integers else ("bit_not",))])
    if name == "square_root":
        x = np.abs(x)
    if name == "reciprocal" and tame:
        x = as_stored((np.sign(x) * (np.abs(x) / 2 + 0.5)).astype(x.dtype), case.dtype)
        if case.arguments.get("reduction") == "product":
            x = np.copysign(near_one(case.random, case.dtype, len(x)), x)
    case.add("x", x)
    with np.errstate(all="ignore"):
        return UNARY[name](x)


def transforms(xp, random, dtype):
    n = length(random)
    case = made(xp, random, "transform", "transform", dtype)
    made_of = unary(case, spoilt(random, elements(random, dtype, n)))
    becomes(case, "x", "y", as_stored(made_of, dtype))
    yield case

    for op in BINARY:
        if op.startswith("bit_") and dtype not in INTEGERS:
            continue
        case = made(xp, random, "transform_pairs", "transform_pairs", dtype, op=op)
        x, y = (spoilt(random, elements(random, dtype, n)) for _ in range(2))
        if dtype in INTEGERS:
            special = np.array([0, 1, -1, 3, np.iinfo(x.dtype).min]).astype(x.dtype)
            x, y = (np.where(random.integers(0, 2, n), part, random.choice(special, n)) for part in (x, y))
        case.add("x", x), case.add("y", y)
        with np.errstate(all="ignore"):
            becomes(case, "x", "z", as_stored(BINARY[op](x, y), dtype))
        yield case

    if dtype in NARROW:
        return
    case = made(xp, random, "adjacent_difference", "adjacent_difference", dtype)
    x = spoilt(random, elements(random, dtype, n))
    case.add("x", x)
    with np.errstate(over="ignore", invalid="ignore"):
        if case.choose("neighbour", ["left", "right"]) == "left":
            differences = np.concatenate([x[:1], x[1:] - x[:-1]])
        else:
            differences = np.concatenate([x[:-1] - x[1:], x[-1:]])
    becomes(case, "x", "y", differences)
    yield case


def converted(x, dtype):
    """As numbers of another type: what is beyond the range of integers is the nearest of them, a NaN is 0."""
    if dtype in NARROW:
        return as_stored(x.astype(np.float32), dtype)
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
    for y_dtype in NUMBERS + NARROW:
        n = length(random)
        x = elements(random, dtype, n)
        if dtype not in INTEGERS:
            with np.errstate(over="ignore"):
                x = as_stored(x * x.dtype.type(10) ** random.choice([0, 2, 9, 18, 25], n).astype(x.dtype), dtype)
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
