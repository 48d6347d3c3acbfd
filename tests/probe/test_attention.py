import math

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402

pytestmark = pytest.mark.slow

HEADS, SIZE, LENGTH = 2, 8, 12


class Attn(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.qkv, self.how = nn.Linear(HEADS * SIZE, 3 * HEADS * SIZE), how

    def split(self, x):
        parts = self.qkv(x).chunk(3, dim=-1)
        return [p.view(*x.shape[:2], HEADS, SIZE).transpose(1, 2) for p in parts]

    def forward(self, x):
        q, k, v = self.split(x)
        if self.how == "sdpa":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(SIZE)
            scores = scores.masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -torch.inf)
            weights = {"F": lambda s: F.softmax(s, dim=-1), "method": lambda s: s.softmax(-1)}[self.how](scores)
            y = weights @ v
        return y.transpose(1, 2).reshape(x.shape)


class Model(nn.Module):
    def __init__(self, how):
        super().__init__()
        torch.manual_seed(0)
        self.attn = Attn(how)

    def forward(self, x):
        return self.attn(x)


def truth(model, x):
    q, k, _ = model.attn.split(x)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(SIZE))[0].detach()
    scores = scores.masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -torch.inf)
    return scores.max().item(), torch.special.entr(scores.softmax(-1)).sum(-1).mean().item()


@pytest.mark.parametrize("how", ["sdpa", "F", "method"])
def test_logits_and_entropy_are_those_of_the_scores(attach, stats, how):
    model = Model(how)
    probe = attach(model)
    x = torch.randn(2, LENGTH, HEADS * SIZE)
    model(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    top, entropy = truth(model, x)
    got = stats(reading, "attn")
    assert got["attn_logit_max"] == pytest.approx(top, rel=1e-5)
    assert got["attn_entropy"] == pytest.approx(entropy, rel=1e-5)


def test_multihead_attention_is_seen_and_its_output_is_an_activation(attach, stats):
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    probe = attach(model)
    x = torch.randn(3, 10, 16)
    padding = torch.zeros(3, 10, dtype=torch.bool)
    padding[:, 7:] = True
    model(x, src_key_padding_mask=padding).sum().backward()
    (reading,) = probe.read([probe.measure()])
    attn = model.self_attn
    q, k, _ = F.linear(x[0], attn.in_proj_weight, attn.in_proj_bias).detach().chunk(3, -1)
    scores = q.view(10, 2, 8).transpose(0, 1) @ k.view(10, 2, 8).transpose(0, 1).transpose(1, 2) / math.sqrt(8)
    scores = scores.masked_fill(padding[0], -torch.inf)
    got = stats(reading, "self_attn.in_proj_weight")
    assert got["attn_logit_max"] == pytest.approx(scores.max().item(), rel=1e-4)
    assert got["attn_entropy"] == pytest.approx(torch.special.entr(scores.softmax(-1)).sum(-1).mean().item(), rel=1e-4)
    out = attn(x, x, x, key_padding_mask=padding)[0]
    assert got["act_std"] == pytest.approx(out.std().item(), rel=1e-3)


def test_masks_with_the_lowest_number_of_the_type_do_not_count(attach, stats):
    model = Model("sdpa")
    mask = torch.full((LENGTH, LENGTH), torch.finfo(torch.float32).min).triu(1)
    model.attn.forward = lambda x: F.scaled_dot_product_attention(*model.attn.split(x), attn_mask=mask)
    probe = attach(model)
    x = torch.randn(2, LENGTH, HEADS * SIZE)
    model(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    # The frame that calls has no module for its first argument, the one above it has.
    name = "attn" if "attn" in reading.names else reading.names[-1]
    assert stats(reading, name)["attn_entropy"] == pytest.approx(truth(model, x)[1], rel=1e-4)


def test_a_query_that_sees_no_key_has_no_part_in_the_mean(attach, stats):
    model = Model("sdpa")
    mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    mask[3] = False
    model.attn.forward = lambda x: F.scaled_dot_product_attention(*model.attn.split(x), attn_mask=mask)
    probe = attach(model)
    x = torch.randn(2, LENGTH, HEADS * SIZE)
    model(x).sum().backward()
    (reading,) = probe.read([probe.measure()])
    q, k, _ = model.attn.split(x)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(SIZE))[0].detach().masked_fill(~mask, -torch.inf)
    seen = torch.special.entr(scores[:, mask.any(-1)].softmax(-1)).sum(-1).mean().item()
    name = "attn" if "attn" in reading.names else reading.names[-1]
    assert stats(reading, name)["attn_entropy"] == pytest.approx(seen, rel=1e-4)


def test_the_softmax_of_a_loss_or_a_router_is_not_attention(attach):
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 5)

        def forward(self, x):
            return F.softmax(self.lin(x), dim=-1) + torch.softmax(self.lin(x), 0)

    model = Other()
    probe = attach(model)
    model(torch.randn(3, 7, 4)).sum().backward()
    (reading,) = probe.read([probe.measure()])
    assert "attn_logit_max" not in reading.columns


def test_functions_are_wrapped_during_sampled_forwards_only(attach):
    before = (F.scaled_dot_product_attention, F.softmax, torch.softmax, torch.Tensor.softmax)
    model = Model("sdpa")
    seen = []
    model.attn.register_forward_hook(lambda *_: seen.append(F.scaled_dot_product_attention))
    probe = attach(model, activation_every=2)
    for _ in range(2):
        model(torch.randn(2, LENGTH, HEADS * SIZE)).sum().backward()
        assert (F.scaled_dot_product_attention, F.softmax, torch.softmax, torch.Tensor.softmax) == before
        probe.measure()
    assert [function is before[0] for function in seen] == [False, True]
    assert "softmax" not in vars(torch.Tensor)


def test_functions_are_put_back_when_the_forward_raises(attach):
    before = F.scaled_dot_product_attention
    model = Model("sdpa")
    attach(model)
    with pytest.raises(RuntimeError):
        model(torch.randn(2, LENGTH, 3))
    assert F.scaled_dot_product_attention is before
