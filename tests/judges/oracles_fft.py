"""Fourier transforms, by SciPy's where NumPy judges, else by CuPy's."""

import numpy as np

from case import is_complex, real_of

NOT_JUDGED = {}


def transforms(xp):
    if xp is np:
        import scipy.fft

        return scipy.fft
    return xp.fft


def places(xp, storage, extents, batch):
    """Where each element of a side lies, in the order of batch and extents; see fft::Storage."""
    stored = [given or extent for given, extent in zip(storage["stored"], extents)]
    pitch, result = storage["stride"] or 1, 0
    for axis in reversed(range(len(extents))):
        shape = [1] * (len(extents) + 1)
        shape[axis + 1] = extents[axis]
        result = result + xp.arange(extents[axis]).reshape(shape) * pitch
        pitch *= stored[axis]
    return result + xp.arange(batch).reshape([-1] + [1] * len(extents)) * (storage["distance"] or pitch)


def transform(c):
    xp, rank = c.xp, c.rank
    extents, axes, library = c.extents[:rank], tuple(range(1, rank + 1)), transforms(c.xp)
    real_in, real_out = c.kind == "real_to_complex", c.kind == "complex_to_real"
    halved = extents[:-1] + [extents[-1] // 2 + 1]
    volume = int(np.prod(extents))

    def numbers(flat, real):
        """Of f16 and bf16 complex numbers are pairs."""
        return flat if real or is_complex(c.dtype) else flat[0::2] + 1j * flat[1::2]

    def dtype(real):
        return real_of(c.dtype) if real else c.dtype

    x = numbers(c.flat("input", dtype(real_in)), real_in)[places(xp, c.input_storage, halved if real_out else extents, c.batch)]
    wanted = c.host({"forward": lambda: library.fftn(x, axes=axes),
                     "inverse": lambda: library.ifftn(x, axes=axes) * volume,
                     "real_to_complex": lambda: library.rfftn(x, axes=axes),
                     "complex_to_real": lambda: library.irfftn(x, extents, axes=axes) * volume}[c.kind]())
    before, after = (c.host(numbers(flat, real_out)) for flat in (c.flat("output", dtype(real_out)),
                                                                  c.after("output", dtype=dtype(real_out))))
    at = places(np, c.output_storage, halved if real_in else extents, c.batch)
    where = [c.place(name) for name in ("input", "output")]
    in_place = (where[0]["region"], where[0]["offset"]) == (where[1]["region"], where[1]["offset"])
    if not (in_place and (real_in or real_out)):  # there rows of the one side lie between those of the other
        between = np.ones(after.size, bool)
        between[at] = False
        c.demand("elements between the transforms that changed", np.sum(after[between] != before[between]), 0)
    c.may_change("output", *(["input"] if real_out else []))
    if real_out and np.isnan(wanted).any():
        return  # not all of such a spectrum is read
    found, is_number = after[at], ~np.isnan(wanted)
    c.demand("results that are numbers, or none, and should not be", np.sum(np.isnan(found) == is_number), 0)
    # Rounding grows with the logarithm of the length; see https://www.fftw.org/accuracy/comments.html
    norm = float(np.linalg.norm(wanted[is_number])) or 1.0
    error = float(np.linalg.norm(found[is_number] - wanted[is_number])) / norm
    c.demand("relative error", error, 4 * c.epsilon() * (2 + np.log2(volume)))


ORACLES = {"transform": transform}
#: with one element that is none, no number of its transform is one
UNUSUAL = {"transform": {dtype: [np.nan] for dtype in ("c64", "c128", "f16", "bf16")}}
