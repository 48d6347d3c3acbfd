"""Training scripts that tests of several rooms write down and run."""

from __future__ import annotations

CLASSIFIER = """
import sys, torch
torch.manual_seed(0)
data = torch.randn(256, 8)
labels = (data[:, 0] > 0).long()
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(60):
    pick = torch.randint(256, (32,))
    {zero}
    loss = torch.nn.functional.cross_entropy(model(data[pick]), labels[pick])
    loss.backward()
    optimizer.step()
"""


def classifier(zero: str = "optimizer.zero_grad()") -> str:
    """Return a training of 60 steps; `zero` is the line that clears the gradients."""
    return CLASSIFIER.replace("{zero}", zero)
