from accelerate import Accelerator, DataLoaderConfiguration
from common import MLP, F, say, torch
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        generator = torch.Generator().manual_seed(3)
        for _ in range(64):
            yield torch.randn(16, generator=generator), torch.randint(0, 4, (), generator=generator)


torch.manual_seed(0)
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=True))
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, batches = accelerator.prepare(model, optimizer, DataLoader(Stream(), batch_size=8))
for x, y in batches:
    optimizer.zero_grad()
    accelerator.backward(F.cross_entropy(model(x), y))
    optimizer.step()
    say(f"got {accelerator.process_index} {x.sum().item().hex()}")
