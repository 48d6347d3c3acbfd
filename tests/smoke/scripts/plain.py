from common import MLP, F, finish, loader, report, torch
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for x, y in loader():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    report(loss)
finish(model)
