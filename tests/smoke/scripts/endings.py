# ruff: noqa: T201
import os
import sys
import threading
import time

from common import MLP, F, loader, report, torch

how = sys.argv[1]
if how == "thread":
    threading.Thread(target=time.sleep, args=(600,)).start()
torch.manual_seed(0)
model = MLP()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
try:
    for place, (x, y) in enumerate(loader()):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        try:
            loss.backward()
        except Exception:  # noqa: BLE001
            print("an ordinary exception")
        except BaseException:
            if how != "bare":
                raise
            print("caught everything")
        optimizer.step()
        report(loss)
        if place == 2:
            if how == "exit":
                sys.exit(3)
            if how == "exit-0":
                sys.exit(0)
            if how == "os-exit":
                os._exit(4)
            if how == "raise":
                raise ValueError("the loss is on strike")
            if how == "exec":
                os.execv(sys.executable, [sys.executable, sys.argv[0], "none"])
            if how == "sleep":
                time.sleep(600)
finally:
    print("the finally block ran", flush=True)
