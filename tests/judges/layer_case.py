"""A call of dnn, and what PyTorch says must come of it."""

import os

import numpy as np
import torch

from case import EPSILON, Case, narrow, representable, widen

#: cuDNN has rules of its own for numbers that are not finite, where it is not guarded
ON_CUDA = os.environ.get("TROUPE_TEST_BACKEND") == "cuda"


def numbers_of(values):
    return values.detach().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def last(values):
    """The channels behind the spatial dimensions, as they lie in memory."""
    return values.movedim(1, -1)


class LayerCase(Case):
    """Tensors are PyTorch's, of f64, with the numbers that troupe is given in a narrower type."""

    may_lack = True  # cuDNN decides what it computes

    def __init__(self, random, call, dtype, operation="graph", **arguments):
        super().__init__(np, random, f"dnn.{operation}", call, dtype, **arguments)
        if operation == "graph":
            self.table_dtype = "f32"  # what is between the nodes

    def given(self, name, extents, values=None, order=lambda tensor: tensor, dtype=None):
        """Adds an array that is read, and returns its numbers as a tensor; they are random unless `values` are given.
        `order` makes of a tensor one whose elements stand in the order in which they lie in memory."""
        dtype = dtype or self.dtype
        if values is None:
            values = self.random.uniform(-1, 1, extents)
        values = torch.tensor(numbers_of(values).astype(np.float64))
        in_memory = order(values)
        self.add(name, in_memory.contiguous().numpy().ravel(), dtype)
        stored = widen(self.arrays[name][0], dtype)
        self.expected.append((name, stored, 0))
        places = order(torch.arange(values.numel()).reshape(values.shape)).reshape(-1)
        rounded = torch.empty(values.numel(), dtype=torch.float64)
        rounded[places] = torch.tensor(stored.astype(np.float64))
        return rounded.reshape(values.shape).requires_grad_()

    def spoil(self, name, places):
        """NaN in an array that was given, at places in the order in which it lies in memory."""
        stored, dtype, spec = self.arrays[name]
        stored = stored.copy()
        stored[places] = narrow(np.float64(np.nan), dtype)
        self.arrays[name] = stored, dtype, spec
        self.expected = [(which, widen(stored, dtype) if which == name else flat, tolerance)
                         for which, flat, tolerance in self.expected]

    def made(self, name, values, terms=1, rounds=1, order=lambda tensor: tensor, dtype=None):
        """Adds an array that must become these numbers, sums of so many products. `rounds`: how often an engine may
        round to the dtype on the way."""
        flat = numbers_of(order(values)).ravel()
        self.add(name, self.numbers(flat.size, dtype), dtype)
        self.becomes(name, flat, terms, rounds)

    def updated(self, name, before, added, terms=1, rounds=1):
        """Adds an array of these numbers, to which others must be added."""
        self.add(name, before)
        stored, dtype, _ = self.arrays[name]
        self.becomes(name, widen(stored, dtype) + numbers_of(added).ravel(), terms, rounds)

    def becomes(self, name, flat, terms, rounds):
        dtype = self.arrays[name][1]
        flat = representable(flat, dtype)
        tolerance = 0
        if dtype in EPSILON:
            largest = np.max(np.abs(flat[np.isfinite(flat)]), initial=0)
            step = min(EPSILON[dtype], EPSILON["f32"])
            tolerance = 2 * rounds * EPSILON[dtype] * largest + 4 * step * (terms + 2)
        self.expected.append((name, flat, tolerance))
