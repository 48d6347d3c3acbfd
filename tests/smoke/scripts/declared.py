"""Trains for --max-steps with a schedule whose length is what --horizon says."""

import argparse

from common import MLP, F, finish, loader, torch

parser = argparse.ArgumentParser()
parser.add_argument("--max-steps", type=int, default=60)
parser.add_argument("--warmup-steps", type=int, default=10)
parser.add_argument("--accumulate", type=int, default=2)
parser.add_argument("--horizon", choices=["steps", "micro_batches", "unused", "epochs"], default="steps")
args = parser.parse_args()

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
length = args.max_steps * (args.accumulate if args.horizon == "micro_batches" else 1)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=args.warmup_steps)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, length - args.warmup_steps)
schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, decay], [args.warmup_steps])
step = micro = 0
batches = loader(count=20)
while step < args.max_steps:
    for x, y in batches:
        micro += 1
        (F.cross_entropy(model(x), y) / args.accumulate).backward()
        if micro % args.accumulate:
            continue
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if args.horizon in ("steps", "micro_batches"):
            schedule.step()
        if step >= args.max_steps:
            break
    if args.horizon == "epochs":
        schedule.step()
finish(model)
