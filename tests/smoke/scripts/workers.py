import sys

from common import MLP, F, finish, loader, report, torch

if __name__ == "__main__":
    torch.manual_seed(0)
    model = MLP()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for x, y in loader(num_workers=2, multiprocessing_context=sys.argv[1]):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        report(loss)
    finish(model)
