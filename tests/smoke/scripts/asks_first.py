"""Asks whether there is a torch before it imports it, as transformers does; its steps' gradients are no backward's."""

import importlib.util

assert importlib.util.find_spec("torch") is not None

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402, N812
from common import MLP, STEPS, finish, loader, report  # noqa: E402

torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.jit.trace(model.eval(), torch.zeros(2, 16))
assert "values" not in torch.fx.symbolic_trace(model.train()).code
for x, y in loader(STEPS):
    loss = F.cross_entropy(model(x), y)
    parameters = list(model.parameters())
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()
    report(loss)
finish(model)
