import io

from common import MLP, F, finish, loader, report, torch

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step, (x, y) in enumerate(loader()):
    if step == 3:  # a checkpoint is written and read, the optimizer is built anew
        file = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        saved = torch.load(file)
        model.load_state_dict(saved["model"])
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        optimizer.load_state_dict(saved["optimizer"])
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    report(loss)
finish(model)
