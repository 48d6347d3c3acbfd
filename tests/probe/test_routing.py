import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from trainscope.probe.routing import blocks  # noqa: E402

pytestmark = pytest.mark.slow


class Moe(nn.Module):
    def __init__(self, name="router", top_k=1, deep=False):
        super().__init__()
        torch.manual_seed(0)
        router = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)) if deep else nn.Linear(8, 4)
        setattr(self, name, router)
        self.name, self.top_k = name, top_k
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        weights = getattr(self, self.name)(x).softmax(-1)
        return sum(weights[..., i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


class Wrapped(nn.Module):
    def __init__(self, **kwargs):
        super().__init__()
        self.mlp = Moe(**kwargs)

    def forward(self, x):
        return self.mlp(x)


def shares(probe):
    (reading,) = probe.read([probe.measure()])
    return {name: share.tolist() for name, share in reading.shares.items()}


@pytest.mark.parametrize("top_k", [1, 2])
def test_shares_are_the_fractions_of_chosen_experts_over_all_micro_batches(attach, top_k):
    model = Wrapped(top_k=top_k)
    probe = attach(model)
    xs = [torch.randn(16, 5, 8), torch.randn(16, 5, 8)]
    for x in xs:
        model(x).sum().backward()
    chosen = model.mlp.router(torch.cat(xs)).topk(top_k, -1).indices
    want = torch.bincount(chosen.reshape(-1), minlength=4) / chosen.numel()
    assert shares(probe) == {"mlp.router": pytest.approx(want.tolist())}


def test_only_the_outermost_module_of_a_router_is_one(attach):
    model = Wrapped(deep=True)
    assert [name for name, _, _ in blocks(model)] == ["mlp.router"]


def test_the_gate_beside_experts_is_a_router_and_other_gates_are_not(attach):
    model = Wrapped(name="gate")
    model.gate = nn.Linear(2, 2)
    model.mlp.experts[0].gate_proj = nn.Linear(2, 2)
    assert [name for name, _, _ in blocks(model)] == ["mlp.gate"]


def test_evaluation_does_not_count(attach):
    model = Wrapped()
    probe = attach(model)
    model.eval()
    model(torch.randn(4, 5, 8))
    assert shares(probe) == {}


@pytest.mark.parametrize("softmaxed", [True, False])
def test_slot_shares_of_an_addressor_are_softmaxed_once(attach, softmaxed):
    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.addressor = nn.Sequential(nn.Linear(8, 16), nn.Softmax(-1) if softmaxed else nn.Identity())
            self.bank = nn.Parameter(torch.randn(16, 8))

        def forward(self, x):
            address = self.addressor(x)
            return (address if softmaxed else address.softmax(-1)) @ self.bank

    torch.manual_seed(0)
    model = Memory()
    with torch.no_grad():
        model.addressor[0].bias[3] = 50.0  # a one-hot address
    probe = attach(model)
    model(torch.randn(10, 8)).sum().backward()
    found = shares(probe)["addressor"]
    assert found[3] == pytest.approx(1.0, abs=1e-4)
    assert sum(found) == pytest.approx(1)
    assert probe.addressors == {"addressor"}


def test_routers_of_hugging_face_models_are_seen(attach):
    transformers = pytest.importorskip("transformers")
    config = transformers.MixtralConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.MixtralForCausalLM(config)
    probe = attach(model)
    ids = torch.randint(50, (2, 12))
    model(input_ids=ids, labels=ids).loss.backward()
    (reading,) = probe.read([probe.measure()])
    assert len(reading.shares) == 2
    assert all("mlp.gate" in name for name in reading.shares)
    assert all(share.numel() == 4 and share.sum().item() == pytest.approx(1) for share in reading.shares.values())
    attention = [name for name in reading.names if name.endswith("self_attn")]
    assert len(attention) == 2
    assert "attn_entropy" in reading.columns
