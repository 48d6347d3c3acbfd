"""A second model of the class that is trained, whose parameters have no shapes before its first forward."""

from common import F, finish, loader, nn, report, torch


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.LazyLinear(32), nn.LazyLinear(4)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


torch.manual_seed(0)
model, other = Lazy(), Lazy()
model(torch.zeros(1, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(loader()):
    if step % 2 == 0:
        with torch.no_grad():
            other(x)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    report(loss)
finish(model)
