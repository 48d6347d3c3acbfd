from common import MLP, STEPS, F, finish, report, torch

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(STEPS):
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    report(loss)
finish(model)
