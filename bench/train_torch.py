#!/usr/bin/env python3
"""The model of troupe-train in PyTorch, data parallel by DDP: what its tokens per second are set beside.

  torchrun --nproc-per-node N bench/train_torch.py [OPTION...]
  mpirun -n N python3 bench/train_torch.py [OPTION...]

The options are those of troupe-train (docs/train.md) of the same names. Sequences begin anywhere in the text, drawn by
PyTorch: so losses are like those of troupe-train, and not the same. Ends with one line of JSON on rank 0.
"""

import argparse
import json
import math
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

MODELS = {"tiny": (4, 4, 128, 64), "gpt2": (12, 12, 768, 1024), "gpt2-medium": (24, 16, 1024, 1024),
          "gpt2-large": (36, 20, 1280, 1024), "gpt2-xl": (48, 25, 1600, 1024)}


class Layer(nn.Module):
    def __init__(self, heads, channels):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.qkv, self.projection = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.rise, self.fall = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x):
        batch, sequence, channels = x.shape
        parts = self.qkv(self.norm1(x)).split(channels, dim=2)
        q, k, v = (part.view(batch, sequence, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, sequence, channels))
        return x + self.fall(functional.gelu(self.rise(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, layers, heads, channels, sequence, vocabulary):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, channels), nn.Embedding(sequence, channels)
        self.layers = nn.ModuleList(Layer(heads, channels) for _ in range(layers))
        self.norm = nn.LayerNorm(channels)
        for name, parameter in self.named_parameters():
            if parameter.dim() >= 2:
                of_sums = "projection" in name or "fall" in name
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if of_sums else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight
        for layer in self.layers:
            x = layer(x)
        logits = functional.linear(self.norm(x), self.token.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="tiny")
    for name in ("layers", "heads", "channels", "sequence"):
        parser.add_argument("--" + name, type=int)
    for name, value in (("vocabulary", 256), ("batch", 8), ("steps", 100), ("warmup", 10), ("seed", 1), ("log-every", 10)):
        parser.add_argument("--" + name, type=int, default=value)
    for name, value in (("learning-rate", 1e-3), ("weight-decay", 0.1), ("grad-clip", 1.0)):
        parser.add_argument("--" + name, type=float, default=value)
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--text", required=True)
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--cpu", action="store_true", help="on the CPU, by Gloo")
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="N steps more: rank 0 lists their kernels")
    return parser.parse_args()


def join():
    """Rank, number of ranks and rank on this host, as torchrun or Open MPI says."""
    for ours, theirs in (("RANK", "OMPI_COMM_WORLD_RANK"), ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"),
                         ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")):
        os.environ.setdefault(ours, os.environ.get(theirs, "1" if ours == "WORLD_SIZE" else "0"))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29411")
    return (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))


def main():
    options = parse()
    rank, ranks, local_rank = join()
    shape = [getattr(options, name) or value
             for name, value in zip(("layers", "heads", "channels", "sequence"), MODELS[options.model])]
    layers, _, channels, sequence = shape
    device = torch.device("cpu") if options.cpu else torch.device("cuda", local_rank)
    if not options.cpu:
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if options.cpu else "nccl")
    torch.manual_seed(options.seed)
    model = Model(*shape, options.vocabulary).to(device)
    count = sum(parameter.numel() for parameter in model.parameters()) - model.position.weight.numel()
    decayed = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    others = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": options.weight_decay},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=options.learning_rate, betas=(0.9, 0.95), fused=not options.cpu)
    if options.compile:
        model = torch.compile(model)
    model = DistributedDataParallel(model, device_ids=None if options.cpu else [local_rank])
    with open(options.text, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).to(device)
    random = torch.Generator(device).manual_seed(options.seed * 1000003 + rank)
    along = torch.arange(sequence + 1, device=device)

    def step(number):
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * min(1.0, (number + 1) / max(1, options.warmup))
        first = torch.randint(len(text) - sequence, (options.batch, 1), device=device, generator=random)
        chosen = text[first + along].long()
        with torch.autocast(device.type, torch.bfloat16, enabled=options.dtype == "bf16"):
            loss = model(chosen[:, :-1], chosen[:, 1:])
        loss.backward()
        if options.grad_clip > 0:
            nn.utils.clip_grad_norm_(model.parameters(), options.grad_clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    began, warm, loss = 0.0, 0, None
    for number in range(options.steps):
        loss = step(number)
        if options.log_every > 0 and (number + 1) % options.log_every == 0:
            dist.all_reduce(loss)
            if rank == 0:
                print(f"step {number}: loss {loss.item() / ranks:.4f}", flush=True)
            if warm == 0:
                if not options.cpu:
                    torch.cuda.synchronize()
                began, warm = time.perf_counter(), number + 1
    if not options.cpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    if rank == 0 and 0 < warm < options.steps:
        rate = (options.steps - warm) * options.batch * sequence * ranks / seconds
        flops = rate * (6 * count + 12 * layers * channels * sequence)
        print(json.dumps({"app": "train_torch", "ranks": ranks, "steps": options.steps - warm, "seconds": seconds,
                          "tokens_per_second": rate, "model_flops_per_second": flops, "torch": torch.__version__}))
    if options.profile > 0:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for number in range(options.profile):
                step(options.steps + number)
        if rank == 0:
            print(profile.key_averages().table(sort_by="cuda_time_total", row_limit=60, max_name_column_width=100))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
