"""Sorting, reductions, scans and selections, by NumPy or CuPy."""

import numpy as np

from primitives_elements import SIZES, conversions, copies, histograms, transforms, unary
from primitives_values import (INTEGERS, NARROW, NUMBERS, REDUCTIONS, becomes, combined, counted, elements, held,
                               length, made, neutral, operands, reductions_of, result, spoilt, terms_of, wide)

NOT_JUDGED = {}


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
        keys = spoilt(random, elements(random, dtype, n, random.choice([None, 7])))
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
        keys = spoilt(random, elements(random, dtype, length(random) + 1, random.choice([None, 7])))
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
        x = spoilt(random, operands(random, dtype, n, name))
        case = made(xp, random, "reduce", "reduce", dtype, reduction=name)
        case.add("x", x)
        result(case, "result", [combined(name, wide(x))], terms=terms_of(name, n))
        yield case

        x = operands(random, dtype, n, name)
        case = made(xp, random, "transform_reduce", "transform_reduce", dtype, reduction=name)
        made_of = unary(case, x, tame=True)
        result(case, "result", [combined(name, wide(made_of))], terms=2 * n)
        yield case
    for name in ("sum", "min", "max") if dtype in NUMBERS else ():
        n = length(random)
        x = spoilt(random, elements(random, dtype, n))
        offsets = np.sort(np.concatenate([[0, n], random.integers(0, n + 1, int(random.integers(0, 40)))]))
        case = made(xp, random, "segmented_reduce", "segmented_reduce", dtype, reduction=name)
        case.add("x", x), case.add("offsets", offsets, "i64")
        empty = neutral(name, dtype)
        result(case, "result", [combined(name, wide(x[a:b])) if b > a else empty for a, b in zip(offsets, offsets[1:])],
               terms=terms_of(name, n))
        yield case
    for name in ("min", "max"):
        n = length(random)
        x = spoilt(random, elements(random, dtype, n, 5))
        place = int(np.argmin(x) if name == "min" else np.argmax(x))
        case = made(xp, random, "arg_reduce", "arg_reduce", dtype, extreme=name)
        case.add("x", x)
        result(case, "value", [x[place]]), result(case, "index", [place], "i64")
        yield case


def selections(xp, random, dtype):
    n = length(random)
    x = spoilt(random, elements(random, dtype, n, random.choice([None, 3])))
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
    x = np.repeat(spoilt(random, elements(random, dtype, n, 4)), random.integers(1, 9, n))[:n]
    begin = starts(x)
    ends = np.append(begin[1:], n)
    case = made(xp, random, "run_length_encode", "run_length_encode", dtype)
    case.add("x", x)
    result(case, "values", x[begin], room=2), result(case, "lengths", ends - begin, "i64", room=2)
    counted(case, len(begin))
    yield case

    if dtype in NUMBERS:
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
    with np.errstate(over="ignore", invalid="ignore"):
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
        x = spoilt(random, operands(random, dtype, n, name))
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
        x = spoilt(random, operands(random, value_dtype, n, name))
        case.add("keys", keys), case.add("x", x, value_dtype)
        first, begin = first_of(case, name, value_dtype), starts(keys)
        parts = [scanned(case, name, wide(x[a:b]), first) for a, b in zip(begin, np.append(begin[1:], n))]
        becomes(case, "x", "y", np.concatenate(parts), terms_of(name, n))
        yield case


def searches(xp, random, dtype):
    case = made(xp, random, "search", "search", dtype)
    many = random.choice([None, 7])
    ordered, values = (spoilt(random, elements(random, dtype, length(random), many)) for _ in range(2))
    ordered.sort()
    case.add("sorted", ordered), case.add("values", values)
    side = {"lower": "left", "upper": "right"}[case.choose("bound", ["lower", "upper"])]
    result(case, "positions", np.searchsorted(ordered, values, side), "i64")
    yield case


def cases(xp, random, rounds):
    for _ in range(rounds):
        for dtype in NUMBERS:
            for family in (sorts, merges, searches, reductions, selections, runs, scans, transforms, conversions, histograms):
                yield from family(xp, random, dtype)
        for dtype in NARROW:
            for family in (sorts, merges, searches, reductions, selections, runs, transforms, conversions):
                yield from family(xp, random, dtype)
        yield from histograms(xp, random, "u8")
        for dtype in SIZES:
            yield from copies(xp, random, dtype)
