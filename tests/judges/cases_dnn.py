"""Layers of neural networks, judged by PyTorch."""

import math

import numpy as np
import torch
import torch.nn.functional as F

import cases_dnn_layers
from layer_case import ON_CUDA, LayerCase, last

NOT_JUDGED = {"dnn.rnn_space": "each engine has a number of its own",
              **dict.fromkeys(["dnn.lrn", "dnn.lrn_backward", "dnn.ctc_loss"], "no case is written")}
DTYPES = ["f16", "bf16", "f32"]

CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
MAXIMA = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
MEANS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}

# What a mode makes of a, and of the options.
OF_ONE = {
    "identity": lambda a, o: a, "abs": lambda a, o: a.abs(), "negate": lambda a, o: -a,
    "reciprocal": lambda a, o: 1 / a, "sqrt": lambda a, o: a.sqrt(), "rsqrt": lambda a, o: a.rsqrt(),
    "exp": lambda a, o: a.exp(), "log": lambda a, o: a.log(), "erf": lambda a, o: torch.erf(a),
    "sin": lambda a, o: a.sin(), "cos": lambda a, o: a.cos(), "tan": lambda a, o: a.tan(),
    "ceil": lambda a, o: a.ceil(), "floor": lambda a, o: a.floor(),
    "relu": lambda a, o: F.leaky_relu(a, o["slope"]).clamp(max=o["upper"]),
    "sigmoid": lambda a, o: F.sigmoid(a), "tanh": lambda a, o: F.tanh(a), "elu": lambda a, o: F.elu(a, o["alpha"]),
    "gelu": lambda a, o: F.gelu(a), "gelu_tanh": lambda a, o: F.gelu(a, approximate="tanh"),
    "softplus": lambda a, o: F.softplus(a, o["beta"], threshold=1000),
    "swish": lambda a, o: F.silu(o["beta"] * a) / o["beta"], "logical_not": lambda a, o: torch.logical_not(a)}
# Of what numbers modes are that do not take all from -2 to 2: a tangent has poles.
POSITIVE = {"reciprocal", "sqrt", "rsqrt", "log", "power", "divide"}
WHOLE = {"equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_not", "logical_and",
         "logical_or"}
OF_TWO = {
    "add": torch.add, "add_square": lambda a, b: a + b * b, "subtract": torch.sub, "multiply": torch.mul,
    "divide": torch.div, "maximum": torch.maximum, "minimum": torch.minimum, "modulo": torch.fmod, "power": torch.pow,
    "equal": torch.eq, "not_equal": torch.ne, "greater": torch.gt, "greater_equal": torch.ge, "less": torch.lt,
    "less_equal": torch.le, "logical_and": torch.logical_and, "logical_or": torch.logical_or}
# Not finite, or large; in f16 all of them are infinite or NaN.
SPECIAL = [-math.inf, math.inf, math.nan, -3e38, 3e38, -1e20, 1e20, 1e25]
# Where a cuda engine computes the function alone, by its own kernels. PyTorch has no gradients of relu and elu at NaN.
WITH_LIMITS = {"relu", "gelu", "gelu_tanh", "softplus", "swish", "maximum", "minimum"}
WITH_GRADIENTS = ["relu", "sigmoid", "tanh", "elu", "gelu", "gelu_tanh", "softplus", "swish"]
REDUCTIONS = {
    "add": torch.sum, "minimum": torch.amin, "maximum": torch.amax, "average": torch.mean,
    "max_abs": lambda x, dim, keepdim: x.abs().amax(dim, keepdim),
    "norm1": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 1, dim, keepdim),
    "norm2": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 2, dim, keepdim),
    "multiply": lambda x, dim, keepdim: product(x, dim),
    "multiply_without_zeros": lambda x, dim, keepdim: product(torch.where(x == 0, 1, x), dim)}


def product(x, dims):
    for dim in dims:
        x = x.prod(dim, keepdim=True)
    return x


def padded(x, before, after, value=0.0):
    pairs = [number for pair in zip(reversed(before), reversed(after)) for number in pair]
    return F.pad(x, pairs, value=value)


def some(random, count, low, high):
    return [int(number) for number in random.integers(low, high, count)]


class Windows:
    """Windows of filters or pools that fit on images."""

    def __init__(self, random, dense=False):
        self.rank = int(random.integers(1, 4))
        self.size = some(random, self.rank, 1, 4)
        self.strides = some(random, self.rank, 1, 3)
        self.dilations = [1] * self.rank if dense else some(random, self.rank, 1, 3)
        # Less than a window, so that none lies in the padding alone.
        self.before, self.after = ([int(random.integers(0, size)) for size in self.size] for _ in range(2))
        self.extents = [int(random.integers(4, 8)) + dilation * (size - 1)
                        for size, dilation in zip(self.size, self.dilations)]

    def arguments(self, size):
        return {size: self.size, "strides": self.strides, "before": self.before, "after": self.after,
                "extents": self.extents}


def convolution(random, dtype, call):
    windows = Windows(random)
    batch, groups = int(random.integers(1, 4)), int(random.choice([1, 1, 2]))
    inputs, outputs = groups * int(random.choice([1, 4, 8])), groups * int(random.choice([1, 4, 8]))
    case = LayerCase(random, call, dtype, "convolution" if call == "convolution" else "graph", batch=batch,
                     input_channels=inputs, output_channels=outputs, groups=groups, dilations=windows.dilations,
                     **windows.arguments("filter"))
    x_extents, w_extents = [batch, inputs, *windows.extents], [outputs, inputs // groups, *windows.size]
    x = case.given("x", x_extents, order=last) if call != "convolution_backward_data" else torch.zeros(
        x_extents, dtype=torch.float64, requires_grad=True)
    w = case.given("w", w_extents, order=last) if call != "convolution_backward_filter" else torch.zeros(
        w_extents, dtype=torch.float64, requires_grad=True)
    y = CONVOLVE[windows.rank](padded(x, windows.before, windows.after), w, stride=windows.strides,
                               dilation=windows.dilations, groups=groups)
    products = math.prod(w_extents[1:])
    if call == "convolution":
        case.arguments["bias"] = bool(random.integers(2))
        if case.arguments["bias"]:
            y = y + case.given("b", [outputs]).reshape([outputs] + [1] * windows.rank)
        case.made("y", y, products, 2, order=last)
        return case
    dy = case.given("dy", y.shape, order=last)
    y.backward(dy)
    if call == "convolution_backward_data":
        case.made("dx", x.grad, products * outputs // (inputs // groups), order=last)
    else:
        case.made("dw", w.grad, y.numel() // outputs, order=last)
    return case


def places_in_windows(index, padded_extents, windows):
    """Of places on padded images, those in their windows."""
    places = []
    for extent in reversed(padded_extents):
        places.insert(0, index % extent)
        index = index // extent
    inside = torch.zeros_like(index)
    for i, place in enumerate(places):
        shape = [1] * inside.dim()
        shape[2 + i] = -1
        begin = torch.arange(inside.shape[2 + i]).reshape(shape) * windows.strides[i]
        inside = inside * windows.size[i] + (place - begin)
    return inside


def pooling(random, dtype, call, mode):
    windows = Windows(random, dense=True)
    batch, channels = int(random.integers(1, 3)), int(random.choice([1, 3, 8]))
    case = LayerCase(random, call, dtype, batch=batch, channels=channels, **windows.arguments("window"))
    if not call.startswith("max_"):
        case.arguments["mode"] = mode
    extents = [batch, channels, *windows.extents]
    # No two elements of an image are equal, for any of them might be taken then.
    values = random.permuted(np.tile(np.arange(math.prod(windows.extents)) / 2 - 40, [batch, channels, 1]), axis=-1)
    backward = call.endswith("backward")
    case.may_lack = False  # what cuDNN lacks, kernels of troupe's own compute
    if not backward and random.integers(2):
        # cuDNN's maxima leave NaN out.
        unusual = [math.inf] if ON_CUDA and mode == "maximum" else [math.inf, math.nan]
        place = random.integers(batch), random.integers(channels), random.integers(values.shape[-1])
        values[place] = random.choice(unusual)
    if backward:
        x = torch.tensor(values.reshape(extents), requires_grad=True)
    else:
        x = case.given("x", extents, values.reshape(extents), order=last)
    before, after, steps = windows.before, windows.after, {"kernel_size": windows.size, "stride": windows.strides}
    index = None
    if mode == "maximum":
        whole = padded(x, before, after, -math.inf)
        y, index = MAXIMA[windows.rank](whole, return_indices=True, **steps)
        index = places_in_windows(index, whole.shape[2:], windows)
    else:
        mean = MEANS[windows.rank]
        y = mean(padded(x, before, after), **steps)
        if mode == "average_inside":
            y = y / mean(padded(torch.ones_like(x), before, after), **steps)
    if not backward:
        case.made("y", y, math.prod(windows.size), order=last)
        if call == "max_pooling":
            case.made("index", index, order=last, dtype="i8")
        return case
    dy = case.given("dy", y.shape, order=last)
    if call == "max_pooling_backward":
        case.given("index", y.shape, index, order=last, dtype="i8")
    y.backward(dy)
    case.made("dx", x.grad, math.prod(windows.size), order=last)
    return case


RESIZES = [("nearest", "centres"), ("nearest", "corners"), ("linear", "centres"), ("linear", "ends"),
           ("linear", "corners")]


def resize(random, dtype, call, interpolation, coordinates):
    by_corners = (interpolation, coordinates) == ("linear", "corners")
    rank = 2 if by_corners else int(random.integers(1, 4))
    extents, resized = some(random, rank, 2, 8), some(random, rank, 2, 12)
    if by_corners and random.integers(2):  # cuDNN's only case
        resized = [2 * extent for extent in extents]
    batch, channels = int(random.integers(1, 3)), int(random.choice([1, 3, 8]))
    case = LayerCase(random, call, dtype, batch=batch, channels=channels, extents=extents, resized=resized,
                     interpolation=interpolation, coordinates=coordinates)
    case.may_lack = False  # what cuDNN lacks, kernels of troupe's own compute
    if call == "resize":
        x = case.given("x", [batch, channels, *extents], order=last)
    else:
        x = torch.zeros([batch, channels, *extents], dtype=torch.float64, requires_grad=True)
    if by_corners:  # interpolate() has no such mode
        lines = [2 * torch.arange(n, dtype=torch.float64) * extent / n / (extent - 1) - 1
                 for n, extent in zip(resized, extents)]
        vertical, horizontal = torch.meshgrid(*lines, indexing="ij")
        places = torch.stack([horizontal, vertical], -1).expand(batch, *resized, 2)
        y = F.grid_sample(x, places, padding_mode="border", align_corners=True)
    elif interpolation == "nearest":
        y = F.interpolate(x, resized, mode="nearest" if coordinates == "corners" else "nearest-exact")
    else:
        y = F.interpolate(x, resized, mode=["linear", "bilinear", "trilinear"][rank - 1],
                          align_corners=coordinates == "ends")
    if call == "resize":
        case.made("y", y, 2**rank, order=last)
        return case
    y.backward(case.given("dy", y.shape, order=last))
    case.made("dx", x.grad, math.prod(resized), order=last)
    return case


def pointwise(random, dtype, mode):
    length = int(random.choice([1, 7, 64, 1000]))
    options = {"slope": float(random.choice([0, 0.25])), "upper": float(random.choice([0.7, 1e30])),
               "alpha": float(random.choice([1, 0.75])), "beta": float(random.choice([1, 1.5]))}
    case = LayerCase(random, "pointwise", dtype, mode=mode, length=length, **options)
    case.may_lack = False  # what cuDNN lacks troupe has kernels for
    function = mode.removesuffix("_backward")
    extreme = random.integers(3) == 0 and (not ON_CUDA or function in WITH_LIMITS)

    def given(name):
        if extreme and not (mode != function and name == "a"):
            special = [value for value in SPECIAL if not (mode in ("relu_backward", "elu_backward") and value != value)]
            return case.given(name, [length], random.choice(special, length))
        if mode in WHOLE:
            return case.given(name, [length], random.integers(-2, 3, length))
        if mode in POSITIVE:
            return case.given(name, [length], random.uniform(0.25, 2, length))
        largest = 1.2 if mode == "tan" else 2
        return case.given(name, [length], random.uniform(-largest, largest, length))

    def bounded(x):
        """Limits are what functions come to, where PyTorch's formulas give NaN at infinity."""
        return x.detach().clamp(-1e100, 1e100).requires_grad_()

    if mode != function:
        dy, x = given("a"), bounded(given("b"))
        OF_ONE[function](x, options).backward(dy)
        y = x.grad
    elif mode == "select":
        a, b = given("a"), given("b")
        y = torch.where(case.given("c", [length], random.integers(-1, 2, length)) != 0, a, b)
    elif mode in OF_TWO:
        y = OF_TWO[mode](given("a"), given("b"))
    else:
        a = given("a")
        y = OF_ONE[mode](bounded(a) if mode in WITH_GRADIENTS else a, options)
    case.made("y", y.double(), 64 if "tanh" in mode else 4)  # cuDNN's tanh is off by some 2^-16
    return case


def reduction(random, dtype, word):
    extents = some(random, 3, 1, 9)
    dims = [dim for dim in range(3) if random.integers(2)] or [2]
    reduced = [1 if dim in dims else extent for dim, extent in enumerate(extents)]
    case = LayerCase(random, "reduce", dtype, reduction=word, extents=extents, reduced=reduced)
    case.may_lack = False
    values = random.uniform(0.5, 1.5, extents) * random.choice([-1, 1], extents)
    if word == "multiply_without_zeros":
        values[random.uniform(size=extents) < 0.2] = 0
    if random.integers(3) == 0:
        values[tuple(random.integers(0, extents))] = random.choice([math.inf, -math.inf, math.nan])
    x = case.given("x", extents, values)
    case.made("y", REDUCTIONS[word](x, dims, keepdim=True), math.prod(extents) // math.prod(reduced))
    return case


def matmul(random, dtype):
    batch, (rows, columns, inner) = int(random.integers(1, 4)), [8 * n for n in some(random, 3, 1, 5)]
    case = LayerCase(random, "matmul", dtype, batch=batch, rows=rows, columns=columns, inner=inner)
    alone = str(random.choice(["a", "b", "neither"]))  # there is one for the whole batch

    def factor(name, height, width):
        by_columns = case.arguments[f"by_columns_{name}"] = bool(random.integers(2))
        shared = case.arguments[f"shared_{name}"] = name == alone
        return case.given(name, [1 if shared else batch, height, width],
                          order=lambda tensor: tensor.mT if by_columns else tensor)

    a, b = factor("a", rows, inner), factor("b", inner, columns)
    case.made("c", torch.matmul(a, b).expand(batch, rows, columns), inner)
    return case


def softmax(random, dtype, call):
    outer, extent, inner = (int(n) for n in random.choice([1, 2, 5, 33], 3))
    function = F.log_softmax if call.startswith("log") else F.softmax
    backward = call.endswith("backward")
    case = LayerCase(random, call, dtype, "softmax_backward" if backward else "softmax", extent=extent, inner=inner)
    extents = [outer, extent, inner]
    if not backward:
        values = random.uniform(-8, 8, extents)
        if not ON_CUDA and random.integers(2):
            values[tuple(random.integers(0, extents))] = random.choice([-math.inf, math.inf, math.nan])
        y = function(case.given("x", extents, values), dim=1)
        case.made("y", y, extent)
        return case
    x = torch.tensor(random.uniform(-4, 4, extents), requires_grad=True)
    y = case.given("y", extents, function(x, dim=1))
    dy = case.given("dy", extents)
    # From y as it is stored, which autograd would not take.
    gradient = torch.ops.aten._log_softmax_backward_data if call.startswith("log") else (
        torch.ops.aten._softmax_backward_data)
    case.made("dx", gradient(dy, y, 1, torch.float64), extent)
    return case


def cases(_, random, rounds):
    torch.manual_seed(0)
    modes = [*OF_ONE, *OF_TWO, *(f"{name}_backward" for name in WITH_GRADIENTS), "select"]
    for _ in range(rounds):
        for dtype in DTYPES:
            for call in 2 * ["convolution", "convolution_backward_data", "convolution_backward_filter"]:
                yield convolution(random, dtype, call)
            for call, mode in (("pooling", "maximum"), ("pooling", "average"), ("pooling", "average_inside"),
                               ("max_pooling", "maximum"), ("max_pooling_backward", "maximum"),
                               ("pooling_backward", "average"), ("pooling_backward", "average_inside")):
                yield pooling(random, dtype, call, mode)
            for call in ("resize", "resize_backward"):
                for interpolation, coordinates in RESIZES:
                    yield resize(random, dtype, call, interpolation, coordinates)
            for mode in modes:
                yield pointwise(random, dtype, mode)
            for word in REDUCTIONS:
                yield reduction(random, dtype, word)
            yield matmul(random, dtype)
        for dtype in [*DTYPES, "f64"]:
            for call in ("softmax", "log_softmax", "softmax_backward", "log_softmax_backward"):
                yield softmax(random, dtype, call)
        yield from cases_dnn_layers.cases(random, DTYPES)
