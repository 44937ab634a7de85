"""Attention, normalisations and recurrent networks, judged by PyTorch."""

import math

import torch
import torch.nn.functional as F

from layer_case import ON_CUDA, LayerCase, last


def slopes(heads):
    """Of ALiBi, by its authors' code (Press et al., 2022)."""
    whole = 2 ** int(math.log2(heads))
    first = [2 ** (-8 * (h + 1) / whole) for h in range(whole)]
    return torch.tensor(first + [2 ** (-4 * (2 * r + 1) / whole) for r in range(heads - whole)], dtype=torch.float64)


class Rule:
    """Which keys a query sees, and what is added to its scores."""

    def __init__(self, random, case, sizes):
        self.sizes = sizes
        kind = str(random.choice(["all", "causal", "causal_at_the_end", "window", "lengths", "lengths_causal", "bias",
                                  "bias_causal", "alibi"]))
        arguments = case.arguments
        arguments["diagonal"] = "bottom_right" if kind in ("causal_at_the_end", "window") else "top_left"
        arguments["alibi"], arguments["lengths"] = kind == "alibi", kind.startswith("lengths")
        if kind not in ("all", "lengths", "bias"):
            arguments["right"] = 0
        if kind == "window":
            arguments["left"] = int(random.integers(1, sizes["keys"] + 1))
        queries, keys, batch = (sizes[name] for name in ("queries", "keys", "batch"))
        self.lengths_q, self.lengths_kv = [queries] * batch, [keys] * batch
        if arguments["lengths"]:
            self.lengths_q, self.lengths_kv = ([int(n) for n in random.integers(1, most + 1, batch)]
                                               for most in (queries, keys))
        self.bias = None
        if kind.startswith("bias"):
            arguments["bias"] = [int(random.choice([1, batch])), int(random.choice([1, sizes["heads_q"]])), queries,
                                 keys]
        scale = float(random.choice([1 / math.sqrt(sizes["dim_qk"]), 0.25]))
        arguments["scale"] = scale

    def give(self, case):
        if "bias" in case.arguments:
            self.bias = case.given("bias", case.arguments["bias"])
        if case.arguments["lengths"]:
            batch = self.sizes["batch"]
            case.given("length_q", [batch], self.lengths_q, dtype="i32")
            case.given("length_kv", [batch], self.lengths_kv, dtype="i32")

    def seen(self, case):
        """Booleans: batch, 1, queries, keys."""
        i = torch.arange(self.sizes["queries"])[:, None]
        j = torch.arange(self.sizes["keys"])[None]
        masks = []
        for length_q, length_kv in zip(self.lengths_q, self.lengths_kv):
            ahead = length_kv - length_q if case.arguments["diagonal"] == "bottom_right" else 0
            mask = (i < length_q) & (j < length_kv)
            if "right" in case.arguments:
                mask = mask & (j <= i + ahead + case.arguments["right"])
            if "left" in case.arguments:
                mask = mask & (j > i + ahead - case.arguments["left"])
            masks.append(mask)
        return torch.stack(masks)[:, None]


def attention(random, dtype, call):
    heads_kv = int(random.choice([1, 2, 3]))
    keys = int(random.choice([8, 24, 65]))
    sizes = {"batch": int(random.integers(1, 3)), "heads_kv": heads_kv,
             "heads_q": heads_kv * int(random.choice([1, 2])), "queries": int(random.integers(2, keys + 1)), "keys": keys,
             "dim_qk": int(random.choice([8, 16, 64])), "dim_v": int(random.choice([8, 64]))}
    case = LayerCase(random, call, dtype, **sizes)
    rule = Rule(random, case, sizes)

    def heads(name, count, length, dim, values=None):
        return case.given(name, [sizes["batch"], count, length, dim], values, lambda tensor: tensor.transpose(1, 2))

    q = heads("q", sizes["heads_q"], sizes["queries"], sizes["dim_qk"])
    k = heads("k", heads_kv, keys, sizes["dim_qk"])
    v = heads("v", heads_kv, keys, sizes["dim_v"])
    rule.give(case)
    seen = rule.seen(case)
    blind = ~seen.any(-1, keepdim=True)
    added = torch.zeros(1, dtype=torch.float64) if rule.bias is None else rule.bias
    if case.arguments["alibi"]:
        distance = torch.arange(keys)[None] - torch.arange(sizes["queries"])[:, None]
        added = added + slopes(sizes["heads_q"])[:, None, None] * distance
    # A query that sees nothing sees everything here, and its result is struck out.
    mask = torch.where(seen | blind, added, -math.inf)
    mask = mask.expand(sizes["batch"], sizes["heads_q"], sizes["queries"], keys)
    shared = sizes["heads_q"] // heads_kv
    scale = case.arguments["scale"]
    all_k, all_v = (tensor.repeat_interleave(shared, 1) for tensor in (k, v))
    o = F.scaled_dot_product_attention(q, all_k, all_v, attn_mask=mask, scale=scale)
    o = torch.where(blind, 0.0, o)
    stats = torch.logsumexp(scale * q @ all_k.mT + mask, -1)
    stats = torch.where(blind[..., 0], -math.inf, stats)
    if not ON_CUDA and random.integers(2):
        # Keys and values that no query sees may hold anything: spoil them.
        of_all = seen.expand(sizes["batch"], sizes["heads_q"], sizes["queries"], keys)
        unseen = ~of_all.reshape(sizes["batch"], heads_kv, -1, keys).any(2).transpose(1, 2)
        for name, dim in (("k", sizes["dim_qk"]), ("v", sizes["dim_v"])):
            case.spoil(name, unseen[..., None].expand(*unseen.shape, dim).numpy().ravel())
    order = {"order": lambda tensor: tensor.transpose(1, 2)}
    if call == "attention":
        case.made("o", o, keys, 2, **order)
        case.made("stats", stats, sizes["dim_qk"], dtype="f32")
        return case
    heads("o", sizes["heads_q"], sizes["queries"], sizes["dim_v"], o)
    d_o = heads("d_o", sizes["heads_q"], sizes["queries"], sizes["dim_v"])
    case.given("stats", stats.shape, stats, dtype="f32")
    o.backward(d_o)
    for name, tensor in (("d_q", q), ("d_k", k), ("d_v", v)):
        case.made(name, tensor.grad, keys, 4, **order)
    if rule.bias is not None:
        case.made("d_bias", rule.bias.grad, sizes["batch"] * sizes["heads_q"], 4)
    return case


def statistics(x, dims, epsilon):
    variance, mean = torch.var_mean(x, dims, correction=0)
    return mean, torch.rsqrt(variance + epsilon)


def rms_norm(x, scale, epsilon):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * scale


def norm(random, dtype, which, backward=False):
    """One of layer, rms, instance, group and batch norm, or its gradients."""
    call = f"{which}_norm" + ("_backward" if backward else "")
    epsilon = float(random.choice([1e-5, 1e-2]))
    case = LayerCase(random, call, dtype, epsilon=epsilon)
    # Of these cuDNN computes nothing.
    case.may_lack = which != "group" and call != "instance_norm_backward"
    f32 = {"dtype": "f32"}
    if which in ("layer", "rms"):
        extents, order = [int(random.choice([1, 3, 40])), int(random.choice([8, 64, 200]))], lambda tensor: tensor
        weights, together, dims = extents[1:], extents[1], [1]
    else:
        # The gradient of a norm of two or three elements cancels out.
        low, high, rank = [(8, 13, 1), (3, 6, 2), (2, 4, 3)][int(random.integers(3))]
        spatial = [int(n) for n in random.integers(low, high, rank)]
        channels = int(random.choice([8, 16]))
        extents, order, weights = [int(random.integers(1, 4)), channels, *spatial], last, [channels]
        case.arguments.update(batch=extents[0], channels=channels, spatial=spatial)
        dims, together = list(range(2, len(extents))), math.prod(spatial)
        if which == "batch":
            dims, together = [0, *dims], extents[0] * together
    x = case.given("x", extents, order=order)
    scale = case.given("scale", weights, **f32)
    bias = torch.zeros(weights, dtype=torch.float64, requires_grad=True) if backward else case.given(
        "bias", weights, **f32)
    mean, inverse = statistics(x, dims, epsilon)
    running = None
    if which == "layer":
        y = F.layer_norm(x, weights, scale, bias, epsilon)
    elif which == "rms":
        y = (F.rms_norm(x, weights, scale, epsilon) if hasattr(F, "rms_norm") else rms_norm(x, scale, epsilon)) + bias
        inverse = torch.rsqrt(x.square().mean(1) + epsilon)
    elif which == "instance":
        y = F.instance_norm(x, weight=scale, bias=bias, eps=epsilon)
    elif which == "group":
        groups = case.arguments["groups"] = int(random.choice([1, 2, 4]))
        y = F.group_norm(x, groups, scale, bias, epsilon)
        mean, inverse = statistics(x.reshape(extents[0], groups, -1), [2], epsilon)
        together *= channels // groups
    else:
        if not backward:
            case.arguments["momentum"] = float(random.choice([0.1, 0.5]))
            before = [case.given("running_mean", weights, **f32),
                      case.given("running_variance", weights, random.uniform(0.5, 2, weights), **f32)]
            running = [tensor.detach().clone() for tensor in before]
        y = F.batch_norm(x, *(running or (None, None)), scale, bias, True, case.arguments.get("momentum", 0.1), epsilon)
    if not backward:
        case.made("y", y, together, order=order)
        if which != "rms":
            case.made("mean", mean, together, **f32)
        case.made("inverse_deviation", inverse, together, **f32)
        if running:
            case.made("next_mean", running[0], together, **f32)
            case.made("next_variance", running[1], together, **f32)
        return case
    if which != "rms":
        case.given("mean", mean.shape, mean, **f32)
    case.given("inverse_deviation", inverse.shape, inverse, **f32)
    y.backward(case.given("dy", extents, order=order))
    case.made("dx", x.grad, together, order=order)
    sums = x.numel() // scale.numel()
    case.made("dscale", scale.grad, sums, **f32)
    case.made("dbias", bias.grad, sums, **f32)
    return case


def batch_norm_inference(random, dtype):
    spatial, channels = [int(n) for n in random.integers(2, 6, 2)], int(random.choice([8, 16]))
    extents = [int(random.integers(1, 4)), channels, *spatial]
    case = LayerCase(random, "batch_norm_inference", dtype, batch=extents[0], channels=channels, spatial=spatial,
                     epsilon=float(random.choice([1e-5, 0.1])))
    x = case.given("x", extents, order=last)
    mean, scale, bias = (case.given(name, [channels], dtype="f32") for name in ("running_mean", "scale", "bias"))
    variance = case.given("running_variance", [channels], random.uniform(0.5, 2, channels), dtype="f32")
    y = F.batch_norm(x, mean.detach(), variance.detach(), scale, bias, False,
                     eps=case.arguments["epsilon"])
    case.made("y", y, 4, order=last)
    return case


def weights_of(network):
    """All matrices and then all biases, as they lie in troupe's array."""
    named = dict(network.named_parameters())
    ends = [f"_l{layer}{end}" for layer in range(network.num_layers)
            for end in (["", "_reverse"] if network.bidirectional else [""])]
    kinds = ["weight", "bias"] if network.bias else ["weight"]
    return [named[f"{kind}_{side}{end}"] for kind in kinds for end in ends for side in ("ih", "hh")]


def recurrent(random, dtype, operation):
    cell = str(random.choice(["relu", "tanh", "lstm", "gru"]))
    layers, directions = int(random.integers(1, 3)), int(random.integers(1, 3))
    batch, time = int(random.integers(1, 4)), int(random.integers(1, 6))
    size, hidden = (int(8 * n) for n in random.integers(1, 4, 2))
    lengths = [int(n) for n in random.integers(1, time + 1, batch)] if random.integers(2) else []
    case = LayerCase(random, operation, dtype, operation, cell=cell, layers=layers, both_directions=directions == 2,
                     bias=bool(random.integers(2)), batch=batch, time=time, input=size, hidden=hidden, lengths=lengths)
    options = {"num_layers": layers, "bias": case.arguments["bias"], "batch_first": True,
               "bidirectional": directions == 2, "dtype": torch.float64}
    if cell in ("relu", "tanh"):
        network = torch.nn.RNN(size, hidden, nonlinearity=cell, **options)
    else:
        network = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell](size, hidden, **options)
    parameters = weights_of(network)
    count = sum(tensor.numel() for tensor in parameters)
    stored = case.given("w", [count], random.uniform(-1, 1, count) / math.sqrt(hidden)).detach()
    for tensor in parameters:
        tensor.data, stored = stored[: tensor.numel()].reshape(tensor.shape), stored[tensor.numel() :]
    x = case.given("x", [batch, time, size])
    states = 2 if cell == "lstm" else 1
    initial = case.given("initial", [states, layers * directions, batch, hidden])
    state = tuple(initial) if states == 2 else initial[0]
    if lengths:
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, final = network(packed, state)
        y = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=time)[0]
    else:
        y, final = network(x, state)
    final = torch.stack(final) if states == 2 else final[None]
    rounds = 2 + 2 * layers  # what a step rounds, the next ones damp
    products = size + hidden
    case.made("y", y, products, rounds)
    case.made("final", final, products, rounds)
    if operation == "rnn":
        return case
    dy, dfinal = case.given("dy", y.shape), case.given("dfinal", final.shape)
    ((y * dy).sum() + (final * dfinal).sum()).backward()
    case.made("dx", x.grad, products, 2 * rounds)
    case.made("dinitial", initial.grad, products, 2 * rounds)
    if operation == "rnn_backward_weights":
        gradients = torch.cat([tensor.grad.reshape(-1) for tensor in parameters])
        case.updated("dw", random.uniform(-1, 1, count), gradients, batch * time, 2 * rounds)
    return case


def cases(random, dtypes):
    for dtype in dtypes:
        for call in 4 * ["attention", "attention_backward"]:
            yield attention(random, dtype, call)
        for which in ("layer", "rms", "instance", "group", "batch"):
            yield norm(random, dtype, which)
            yield norm(random, dtype, which, backward=True)
        yield batch_norm_inference(random, dtype)
        for operation in 2 * ["rnn", "rnn_backward_data", "rnn_backward_weights"]:
            yield recurrent(random, dtype, operation)
