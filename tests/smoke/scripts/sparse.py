from common import STEPS, finish, nn, report, torch

torch.manual_seed(0)
model = nn.Embedding(50, 8, sparse=True)
optimizer = torch.optim.SparseAdam(list(model.parameters()))
for _ in range(STEPS):
    optimizer.zero_grad()
    loss = model(torch.randint(0, 50, (16,))).pow(2).sum()
    loss.backward()
    optimizer.step()
    report(loss)
finish(model)
