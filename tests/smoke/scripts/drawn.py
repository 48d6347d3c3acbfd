import copy
import os
import sys

from common import MLP, STEPS, F, finish, nn, report, torch

torch.manual_seed(0)
model = MLP()
if "norm" in sys.argv:
    model.norm = nn.BatchNorm1d(32)
if "closure" in sys.argv:
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, enabled="scaler" in sys.argv)
micro = 2 if "accumulate" in sys.argv else 1
without = [int(step) for step in os.environ.get("WITHOUT", "").split()]
for step in range(STEPS):
    batches = [(torch.randn(8, 16), torch.randint(0, 4, (8,))) for _ in range(micro)]
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict())) if step in without else None

    def closure(batches=batches):
        optimizer.zero_grad()
        for x, y in batches:
            loss = F.cross_entropy(model(x), y) / micro
            scaler.scale(loss).backward()
        return loss

    if "closure" in sys.argv:
        loss = optimizer.step(closure)
    else:
        loss = closure()
        if before is None or step > 0:  # an optimizer without state cannot be given that back
            scaler.step(optimizer)
            scaler.update()
    if before is not None:
        model.load_state_dict(before[0])
        optimizer.load_state_dict(before[1])
    report(loss)
finish(model)
