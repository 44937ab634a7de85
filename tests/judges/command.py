"""A command of troupe's as it was observed: what it was given, what came of it, and what another library says must."""

import numpy as np

from case import EPSILON, NAMES, errors, is_complex, real_of, representable, widen


def scalar_type(dtype):
    """Of what factors are of an operation in a dtype."""
    return dtype if is_complex(dtype) or dtype == "f64" else "f32"


# Views: which elements of an operand a vector or a matrix is.


def vector(n, increment=1):
    return lambda flat: flat[: (n - 1) * abs(increment) + 1 if n else 0][::increment]


def matrix(rows, columns, leading, start=0):
    """Column by column, `leading` elements apart."""

    def view(flat):
        xp = np if isinstance(flat, np.ndarray) else __import__("cupy")
        part, step = flat[start:], flat.dtype.itemsize
        return xp.lib.stride_tricks.as_strided(part, (rows, columns), (step, leading * step))

    return view


def everything(flat):
    return flat


class Command:
    """An operand is named by its name, or by its place in the record's tail. `xp`: numpy or cupy, which computes what is
    expected, in double precision. The operation's fields are attributes."""

    def __init__(self, xp, noted, contents, idle=False):
        self.xp, self.noted, self.contents, self.idle = xp, noted, contents, idle
        self.operation, self.fields, self.tail = noted["operation"], noted["fields"], noted["tail"]
        self.expected = {}  # operand: [what it holds, its dtype, mask of what may change, tolerance of each]
        self.checks = []  # (what, error, tolerance)

    def __getattr__(self, name):
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None

    def has(self, name):
        return name in self.noted["operands"]

    def place(self, name):
        return self.tail[name] if isinstance(name, int) else self.noted["operands"][name]

    def stored(self, name, dtype=None, after=False):
        where, kind = self.place(name), np.dtype(NAMES[dtype or self.dtype])
        at = where["at"] + (where["bytes"] if after and not self.idle else 0)
        return np.frombuffer(self.contents, kind, where["bytes"] // kind.itemsize, at)

    def flat(self, name, dtype=None, after=False):
        """A copy of a whole operand, in double precision, of the judge; integers as they are."""
        return self.xp.array(widen(self.stored(name, dtype, after), dtype or self.dtype))

    def get(self, name, view=everything, dtype=None):
        return view(self.flat(name, dtype))

    def after(self, name, view=everything, dtype=None):
        return view(self.flat(name, dtype, after=True))

    def listed(self, tag):
        """The places in the tail of one list."""
        return [i for i, part in enumerate(self.tail) if part["tag"] == tag]

    def factor(self, name, dtype=None):
        """A scalar, from the host or from the device."""
        dtype = dtype or scalar_type(self.dtype)
        if self.has(name):
            value = widen(self.stored(name, dtype), dtype)[0]
        else:
            value = widen(np.frombuffer(bytes(self.fields[name]), NAMES[dtype])[:1], dtype)[0]
        return complex(value) if is_complex(dtype) else value.item()

    def expect(self, name, view, value, terms=1, where=None, dtype=None, eps=None):
        """That the elements of the view become `value`, sums of so many products, and that nothing else of the operand
        changes. `where`: a mask; the other elements stay as they are."""
        dtype = dtype or self.dtype
        if name not in self.expected:
            flat = self.flat(name, dtype)
            self.expected[name] = [flat, dtype, self.xp.zeros(flat.shape, bool), 0.0]
        flat, _, changes, tolerance = self.expected[name]
        old = view(flat)
        mask = self.xp.ones(old.shape, bool) if where is None else where
        new = self.xp.where(mask, value, old)
        view(changes)[...] |= mask
        view(flat)[...] = new
        if dtype in EPSILON:
            host = self.host(new)
            largest = float(np.max(np.abs(host[np.isfinite(host)]), initial=1))
            own = 4 * EPSILON[dtype] * largest + 16 * (eps or min(EPSILON[dtype], EPSILON["f32"])) * (terms + 2)
            self.expected[name][3] = max(tolerance, own)

    def demand(self, what, error, tolerance):
        """That an error is small; of what has no one right value. Operands that are demanded of may change."""
        self.checks.append((what, float(error), tolerance))

    def may_change(self, *names):
        for name in names:
            self.expected.setdefault(name, None)

    def host(self, values):
        return values.get() if hasattr(values, "get") else np.asarray(values)

    def epsilon(self):
        return EPSILON[self.dtype]

    def real_dtype(self):
        return real_of(self.dtype)

    def faults(self):
        """What is wrong with what the operands hold now."""
        wrong = []
        places = list(self.noted["operands"]) + list(range(len(self.tail)))
        for name in places:
            if name in self.expected:
                wrong += self.faults_of(name)
            elif not self.is_written(name) and np.any(self.stored(name, "u8") != self.stored(name, "u8", after=True)):
                wrong.append(f"{name}: it changed, and must not")
        for what, error, tolerance in self.checks:
            if not error <= tolerance:
                wrong.append(f"{what}: {error:.3g}, more than {tolerance:.3g}")
        return wrong

    def faults_of(self, name):
        if self.expected[name] is None:
            return []
        flat, dtype, changes, tolerance = self.expected[name]
        expected, changes = representable(self.host(flat), dtype), self.host(changes)
        apart = errors(widen(self.stored(name, dtype, after=True), dtype), expected)
        wrong = []
        if np.any(apart[~changes]):
            wrong.append(f"{name}: elements changed that must not")
        error = np.max(apart[changes], initial=0)
        if not error <= tolerance:
            wrong.append(f"{name}: off by {error:.3g}, more than {tolerance:.3g}")
        return wrong

    def is_written(self, name):
        """Whether its memory is, under whatever name."""
        mine = self.place(name)
        start, end = mine["offset"], mine["offset"] + mine["bytes"]
        for other in [*self.noted["operands"].values(), *self.tail]:
            if other["access"] == "read" or other["region"] != mine["region"]:
                continue
            if other["offset"] < end and start < other["offset"] + other["bytes"]:
                return True
        return False
