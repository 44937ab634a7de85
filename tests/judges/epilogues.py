"""Products with epilogues that write, or read, something beside D, by the formulas of their definition."""

import numpy as np

EPILOGUES = ["relu_aux", "relu_aux_bias", "gelu_aux", "gelu_aux_bias", "drelu", "drelu_bgrad", "dgelu", "dgelu_bgrad",
             "bgrad_a", "bgrad_b"]
ROOT, CUBE = np.sqrt(2 / np.pi), 0.044715


def gelu(xp, x):
    return x * (1 + xp.tanh(ROOT * (x + CUBE * x**3))) / 2


def gelu_slope(xp, x):
    tanh = xp.tanh(ROOT * (x + CUBE * x**3))
    return (1 + tanh) / 2 + x / 2 * (1 - tanh**2) * ROOT * (1 + 3 * CUBE * x**2)


def matmul_aux(c, _):
    """Of numbers whose products and sums are exact, so that the signs are."""
    quarters = lambda *shape: c.random.integers(-2, 3, shape) / 4
    m, n, k = (int(c.random.choice(some)) for some in ([128, 256], [16, 48], [16, 32]))
    epilogue = c.choose("epilogue", EPILOGUES)
    t = c.arguments["transpose_b"] = "yes" if epilogue == "bgrad_b" else "no"  # of which cuBLASLt has sums
    c.matrix("a", m, k, quarters(m, k), leading=m)
    c.matrix("b", *((k, n) if t == "no" else (n, k)), quarters(*((k, n) if t == "no" else (n, k))),
             leading=k if t == "no" else n)
    c.matrix("d", m, n, leading=m)
    a, b = c.get("a"), c.get("b") if t == "no" else c.get("b").T
    x = a @ b
    if epilogue.endswith("_bias"):
        c.add("bias", quarters(m))
        x = x + c.flat("bias")[:, None]
    if epilogue.startswith("relu"):
        c.add("aux", c.random.integers(0, 256, m * n // 8), "u8")
        bits = np.packbits(c.host(x >= 0), axis=0, bitorder="little")
        c.expect_flat("aux", bits.T.reshape(-1))
        x = c.xp.maximum(x, 0)
    if epilogue.startswith("gelu"):
        c.add("aux", c.numbers(m * n))
        c.expect_flat("aux", x.T.reshape(-1), k)
        x = gelu(c.xp, x)
    if epilogue.startswith("drelu"):
        c.add("aux", c.random.integers(0, 256, m * n // 8), "u8")
        bits = np.unpackbits(c.arrays["aux"][0].reshape(n, m // 8), axis=1, bitorder="little")
        x = x * c.xp.array(bits.T)
    if epilogue.startswith("dgelu"):
        c.add("aux", c.numbers(m * n))
        x = x * gelu_slope(c.xp, c.flat("aux").reshape(n, m).T)
    c.expect("d", x, k)
    sums = {"bgrad_a": lambda: a.sum(axis=1), "bgrad_b": lambda: b.sum(axis=0)}.get(epilogue, lambda: x.sum(axis=1))
    if "bgrad" in epilogue:
        c.add("bias", c.numbers(n if epilogue == "bgrad_b" else m))
        c.expect_flat("bias", sums(), n)
