"""A training script without a line of ours, for `trainscope ci -- python examples/smoke_digits.py`."""

import torch
from sklearn.datasets import load_digits

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(images, labels),
    batch_size=64,
    shuffle=True,
    generator=torch.Generator().manual_seed(0),
)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(20):
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
