from accelerate import Accelerator
from common import MLP, STEPS, F, finish, loader, report, torch

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
model, optimizer, batches, schedule = accelerator.prepare(model, optimizer, loader(2 * STEPS), schedule)
for x, y in batches:
    with accelerator.accumulate(model):
        loss = F.cross_entropy(model(x), y)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        report(loss)
finish(accelerator.unwrap_model(model))
