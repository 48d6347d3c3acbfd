"""One dropout, written as the first argument says: module, function, attention, recurrent, hand or none."""

import sys

from common import STEPS, F, finish, loader, nn, report, torch

HOW = sys.argv[1]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 32)
        self.drop = nn.Dropout(0.2 if HOW == "module" else 0.0)
        self.rnn = nn.GRU(8, 8, num_layers=2, dropout=0.2 if HOW == "recurrent" else 0.0, batch_first=True)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        hidden = self.drop(self.fc1(x)).view(-1, 4, 8)
        if HOW == "function":
            hidden = F.dropout(hidden, 0.2, self.training)
        if HOW == "attention":
            heads = hidden.unsqueeze(1)
            hidden = F.scaled_dot_product_attention(
                heads, heads, heads, dropout_p=0.2 if self.training else 0.0
            ).squeeze(1)
        if HOW == "hand":
            hidden = hidden * (torch.rand_like(hidden) >= 0.2) / 0.8
        return self.fc2(self.rnn(hidden)[0].flatten(1))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for x, y in loader(STEPS):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    report(loss)
finish(model)
