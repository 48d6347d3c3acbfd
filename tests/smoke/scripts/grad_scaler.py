import sys

from common import MLP, F, finish, loader, report, torch
from torch.nn.utils import clip_grad_norm_

fused = "fused" in sys.argv
torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=fused)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for place, (x, y) in enumerate(loader()):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(model(x), y)
    if place == 3:
        loss = loss * float("inf")
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    if not fused:
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    report(loss)
finish(model)
