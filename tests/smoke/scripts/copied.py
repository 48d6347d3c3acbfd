# ruff: noqa: T201
import copy
import io

from common import MLP, F, finish, loader, nn, report, torch


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(16, 3)
        self.experts = nn.ModuleList([MLP() for _ in range(3)])

    def forward(self, x):
        share = self.router(x).softmax(-1)
        return sum(share[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


torch.manual_seed(0)
model = Expert()
for parameter in model.experts[2].parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
average = copy.deepcopy(model)
for x, y in loader():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    report(loss)
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
            slow.lerp_(fast, 0.1)
file = io.BytesIO()
torch.save(model, file)  # the whole object, hooks and all
file.seek(0)
again = torch.load(file, weights_only=False)
model.eval()
again.eval()
assert torch.equal(again(x), model(x))
scripted = torch.jit.script(MLP(dropout=0.0))
print(float(scripted(x).sum()))
finish(model, average)
