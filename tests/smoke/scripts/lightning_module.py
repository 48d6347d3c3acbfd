import logging
import sys
import warnings

import lightning
from common import MLP, F, finish, loader, report, torch

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Module(lightning.LightningModule):
    def __init__(self, *, automatic):
        super().__init__()
        self.model = MLP()
        self.automatic_optimization = automatic

    def training_step(self, batch, _place):
        loss = F.cross_entropy(self.model(batch[0]), batch[1])
        report(loss)
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


automatic = sys.argv[1] == "automatic"
lightning.seed_everything(0, verbose=False)
module = Module(automatic=automatic)
trainer = lightning.Trainer(
    accelerator="cpu",
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    gradient_clip_val=1.0 if automatic else None,
)
trainer.fit(module, loader())
finish(module)
