import io

from common import MLP, F, finish, loader, report, torch


def built():
    model = MLP()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


torch.manual_seed(0)
model, optimizer = built()
for step, (x, y) in enumerate(loader()):
    if step == 3:  # a checkpoint is written, and read into a model and an optimizer that are built anew
        file = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        saved = torch.load(file)
        model, optimizer = built()
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    report(loss)
finish(model)
