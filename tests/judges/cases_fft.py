"""Fourier transforms, by SciPy's where NumPy judges, else by CuPy's."""

import numpy as np

from case import EPSILON, Case, real_of, widen

NOT_JUDGED = {}
LENGTHS = [1, 2, 3, 7, 8, 13, 16, 30, 64, 97, 100, 128]


def transforms(xp):
    if xp is np:
        import scipy.fft

        return scipy.fft
    return xp.fft


class Side:
    """Where one side of a batch lies: packed, or with gaps between elements, rows and transforms."""

    def __init__(self, random, extents, batch, gaps):
        self.extents, self.batch = extents, batch
        self.stride = int(random.integers(1, 3)) if gaps else 1
        self.stored = [n + (int(random.integers(0, 3)) if gaps else 0) for n in extents]
        pitches = [self.stride]
        for n in reversed(self.stored[1:]):
            pitches.insert(0, pitches[0] * n)
        self.pitches = pitches
        self.distance = pitches[0] * self.stored[0] + (int(random.integers(0, 4)) if gaps else 0)
        self.count = self.distance * batch
        stored = self.stored + [0] * (3 - len(extents))
        self.storage = [self.distance, self.stride, stored] if gaps else [0, 0, [0, 0, 0]]

    def places(self, xp):
        """Of each element, in the order of batch and extents."""
        places = xp.arange(self.batch).reshape([-1] + [1] * len(self.extents)) * self.distance
        for axis, (n, pitch) in enumerate(zip(self.extents, self.pitches)):
            shape = [1] * (len(self.extents) + 1)
            shape[axis + 1] = n
            places = places + xp.arange(n).reshape(shape) * pitch
        return places


def pairs(numbers):
    """Complex numbers as pairs of real ones."""
    return np.stack([numbers.real, numbers.imag], axis=-1).reshape(-1)


def unpaired(numbers):
    return numbers[0::2] + 1j * numbers[1::2]


def make(xp, random, call, dtype, rank, spoils=False):
    """`spoils`: one element is not a number, and with it the whole transform that it is in."""
    paired = dtype in ("f16", "bf16")  # extents are powers of two then
    case = Case(xp, random, "fft.transform", call, dtype)
    extents = [int(n) for n in random.choice([2, 4, 8, 16] if paired else LENGTHS[: 12 if rank == 1 else 8], rank)]
    batch, gaps = int(random.integers(1, 4)), bool(random.integers(0, 2)) and not paired
    halved = extents[:-1] + [extents[-1] // 2 + 1]
    real_in, real_out = call == "real_to_complex", call == "complex_to_real"
    input_side = Side(random, halved if real_out else extents, batch, gaps)
    in_place = call == "forward_in_place"
    output = input_side if in_place else Side(random, halved if real_in else extents, batch, gaps)
    case.arguments.update(extents=extents, batch=batch, input_storage=input_side.storage, output_storage=output.storage)
    axes = tuple(range(1, rank + 1))
    library = transforms(xp)

    in_dtype, out_dtype = (real_of(dtype) if real else dtype for real in (real_in, real_out))
    numbers = case.numbers(input_side.count, "f64" if real_in else "c128")
    if real_out:  # a spectrum that is one of real numbers
        signal = np.random.default_rng(int(random.integers(1 << 30))).uniform(-1, 1, [batch] + extents)
        numbers[input_side.places(np)] = np.fft.rfftn(signal, axes=axes)
    if spoils:
        numbers[random.choice(input_side.places(np).reshape(-1))] = np.nan
    case.add("x", pairs(numbers) if paired and not real_in else numbers, in_dtype)
    x = case.flat("x")
    x = (unpaired(x) if paired and not real_in else x)[input_side.places(xp)]
    if not in_place:
        case.add("y", case.numbers(output.count * (2 if paired and not real_out else 1), out_dtype), out_dtype)
    volume = int(np.prod(extents))
    y = {"forward": lambda: library.fftn(x, axes=axes),
         "forward_in_place": lambda: library.fftn(x, axes=axes),
         "inverse": lambda: library.ifftn(x, axes=axes) * volume,
         "real_to_complex": lambda: library.rfftn(x, axes=axes),
         "complex_to_real": lambda: library.irfftn(x, extents, axes=axes) * volume}[call]()

    name = "x" if in_place else "y"
    places = output.places(np)
    before = case.arrays[name][0]
    wanted = case.host(y)

    def check(case):
        after, stored = widen(case.results[name], out_dtype), widen(before, out_dtype)
        if paired and not real_out:
            after, stored = unpaired(after), unpaired(stored)
        mask = np.ones(after.size, bool)
        mask[places] = False
        yield "elements between the transforms that changed", int(np.sum(after[mask] != stored[mask])), 0
        # Rounding grows with the logarithm of the length; see https://www.fftw.org/accuracy/comments.html
        found, numbers = after[places], ~np.isnan(wanted)
        yield "results that are numbers, or none, and should not be", int(np.sum(np.isnan(found) == numbers)), 0
        norm = float(np.linalg.norm(wanted[numbers])) or 1.0
        error = float(np.linalg.norm(found[numbers] - wanted[numbers])) / norm
        yield "relative error", error, 4 * EPSILON[dtype] * (2 + np.log2(volume))

    case.checks.append(check)
    return case


def make_in_place(xp, random, call, dtype, rank):
    """A real side and its spectrum in one place: rows have room for n / 2 + 1 complex numbers."""
    case = Case(xp, random, "fft.transform", call, dtype)
    extents = [int(n) for n in random.choice(LENGTHS[: 12 if rank == 1 else 8], rank)]
    batch, n, none = int(random.integers(1, 4)), extents[-1], [0, 0, [0, 0, 0]]
    case.arguments.update(extents=extents, batch=batch, input_storage=none, output_storage=none)
    axes, rows = tuple(range(1, rank + 1)), [batch] + extents[:-1] + [2 * (n // 2 + 1)]
    library, volume = transforms(xp), int(np.prod(extents))
    numbers = case.numbers(int(np.prod(rows)), "f64").reshape(rows)
    forward = call == "real_to_complex_in_place"
    if not forward:  # a spectrum that is one of real numbers
        signal = np.random.default_rng(int(random.integers(1 << 30))).uniform(-1, 1, [batch] + extents)
        numbers[...] = np.ascontiguousarray(np.fft.rfftn(signal, axes=axes)).view(np.float64)
    case.add("x", numbers.reshape(-1), real_of(dtype))
    before = case.flat("x").reshape(rows)
    if forward:
        wanted = case.host(library.rfftn(before[..., :n], axes=axes))
    else:
        wanted = case.host(library.irfftn(before[..., 0::2] + 1j * before[..., 1::2], extents, axes=axes) * volume)

    def check(case):
        after = case.results["x"].astype(np.float64).reshape(rows)
        found = after[..., 0::2] + 1j * after[..., 1::2] if forward else after[..., :n]
        error = float(np.linalg.norm(found - wanted)) / (float(np.linalg.norm(wanted)) or 1.0)
        yield "relative error", error, 4 * EPSILON[dtype] * (2 + np.log2(volume))

    case.checks.append(check)
    return case


def cases(xp, random, rounds):
    for call in ("real_to_complex_in_place", "complex_to_real_in_place"):
        for dtype in ("c64", "c128"):
            for rank in (1, 2, 3):
                for _ in range(rounds):
                    yield make_in_place(xp, random, call, dtype, rank)
    for call in ("forward", "inverse", "forward_in_place", "real_to_complex", "complex_to_real"):
        for dtype in ("c64", "c128", "f16", "bf16"):
            if call == "forward_in_place" and dtype in ("f16", "bf16"):
                continue
            for rank in (1, 2, 3):
                for _ in range(rounds):
                    yield make(xp, random, call, dtype, rank)
                if call in ("forward", "real_to_complex"):
                    yield make(xp, random, call, dtype, rank, spoils=True)
