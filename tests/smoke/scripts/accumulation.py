from common import MLP, STEPS, F, finish, loader, report, torch

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
for place, (x, y) in enumerate(loader(4 * STEPS)):
    loss = F.cross_entropy(model(x), y) / 4
    loss.backward()
    report(loss)
    if place % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
finish(model)
