import sys

from common import MLP, F, finish, loader, report, torch


class Inherited(torch.optim.AdamW):
    """Calls its parent's step, which torch has wrapped already: hooks fire twice."""

    def step(self, closure=None):
        return super().step(closure)


class Lookahead(torch.optim.Optimizer):
    """Wraps another optimizer and steps it."""

    def __init__(self, inner):
        self.inner, self.count = inner, 0
        super().__init__(inner.param_groups, {})
        self.slow = [p.detach().clone() for group in self.param_groups for p in group["params"]]

    def step(self, closure=None):
        loss = self.inner.step(closure)
        self.count += 1
        if self.count % 3 == 0:
            with torch.no_grad():
                for slow, p in zip(self.slow, (p for g in self.param_groups for p in g["params"]), strict=True):
                    p.copy_(slow.lerp_(p, 0.5))
        return loss


KINDS = {
    "foreach": lambda p: torch.optim.Adam(p, lr=1e-2, foreach=True),
    "fused": lambda p: torch.optim.Adam(p, lr=1e-2, fused=True),
    "for-loop": lambda p: torch.optim.Adam(p, lr=1e-2, foreach=False, amsgrad=True),
    "inherited": lambda p: Inherited(p, lr=1e-2),
    "lookahead": lambda p: Lookahead(torch.optim.SGD(p, lr=1e-2, momentum=0.9)),
}
torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])  # makes AdamW.step itself a hooked one
torch.manual_seed(0)
model = MLP()
optimizer = KINDS[sys.argv[1]](list(model.parameters()))
for x, y in loader():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    report(loss)
finish(model)
