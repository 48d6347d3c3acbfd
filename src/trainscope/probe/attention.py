"""Largest attention logit and mean attention entropy, where attention can be seen.

Seen: ``F.scaled_dot_product_attention``, ``nn.MultiheadAttention``, and any softmax over the last dimension
of a 4-d score tensor (batch, heads, queries, keys), whoever calls it. Not seen: code inside ``torch.compile``,
kernels called by their own names (FlashAttention, FlexAttention, xFormers), scores normalised by other means.
Logits past 50 or so and entropy near 0 come before a divergence (Dehghani et al., "Scaling vision
transformers to 22 billion parameters", 2023; Zhai et al., "Stabilizing transformer training by preventing
attention entropy collapse", 2023).

Scores inside a fused kernel are computed again for 32 queries of the first sequence; masked keys do not count.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # the field's name for it
from torch import Tensor, nn

QUERIES, MOST_CALLS = 32, 256
"""Of a sequence; and of one module in one step: memory is bounded where a loop trains for long without telling."""
_MULTIHEAD = tuple(inspect.signature(F.multi_head_attention_forward).parameters)
_MASKED = -1e9
"""Masks add minus infinity, or the lowest number of the type."""
_PLACES: tuple[tuple[Any, str], ...] = (
    (F, "scaled_dot_product_attention"),
    (F, "multi_head_attention_forward"),
    (F, "softmax"),
    (torch, "softmax"),
    (Tensor, "softmax"),
)
"""Functions that attention goes through, wrapped during the sampled forwards only: a torch function mode would
see as much, but put Python between the model and each of its other calls."""


class Attention:
    """Watches the attention of sampled training forwards.

    Parameters
    ----------
    names : mapping of int to str
        ``id`` of a module to its name; None for one that is not to be told of.
    guard : callable
        Wraps the measuring so that a fault in it is noted and the forward goes on.
    """

    def __init__(
        self, names: Mapping[int, str | None], guard: Callable[[Callable[..., None]], Callable[..., None]]
    ) -> None:
        self._names = names
        self._seen: dict[str, list[Tensor]] = {}
        self.dropped: set[float] = set()
        """Dropout rates that fused attention was given."""
        self._observe = guard(self._observe_unguarded)

    def enter(self) -> None:
        """Watch from now on."""
        if not _watchers:
            for home, name in _PLACES:
                wrapped = _wrap(name, getattr(home, name))
                _before.append((home, name, vars(home).get(name), wrapped))
                setattr(home, name, wrapped)
        if self not in _watchers:
            _watchers.append(self)

    def leave(self) -> None:
        """Stop watching; the last one to leave puts back what was there."""
        if self in _watchers:
            _watchers.remove(self)
        while _before and not _watchers:
            home, name, before, wrapped = _before.pop()
            if vars(home).get(name) is not wrapped:
                continue  # somebody wrapped it again; ours passes through
            if before is None:
                delattr(home, name)
            else:
                setattr(home, name, before)

    def observe(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Look at what attention was given; does not raise."""
        self._observe(name, args, kwargs)

    def collect(self) -> tuple[tuple[str, ...], tuple[int, ...], Tensor] | None:
        """Return names, calls of each, and (sum of calls, 2) logit maxima and entropies."""
        seen, self._seen = self._seen, {}
        if not seen:
            return None
        device = next(iter(seen.values()))[0].device
        rows = [row.to(device, non_blocking=True) for found in seen.values() for row in found]
        return tuple(seen), tuple(len(found) for found in seen.values()), torch.stack(rows)

    def _observe_unguarded(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.dropped.update({_dropout(name, args, kwargs)} - {0.0})
        with torch.no_grad():
            scores = _scores(name, args, kwargs)
            if scores is None:
                return
            top = scores.amax()
            entropy = torch.special.entr(torch.softmax(scores, dim=-1)).sum(-1).nanmean()
        module = self._caller()
        if module is not None and len(self._seen.get(module, ())) < MOST_CALLS:
            self._seen.setdefault(module, []).append(torch.stack([top, entropy]))

    def _caller(self) -> str | None:
        """Name the module whose code asked for attention: the innermost frame that runs a method of one."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code.co_argcount and code.co_filename != __file__:
                first = frame.f_locals.get(code.co_varnames[0])
                if isinstance(first, nn.Module) and id(first) in self._names:
                    # No farther than the model: a look at its caller's variables would keep them alive.
                    return self._names[id(first)]
            frame = frame.f_back
        return None


_watchers: list[Attention] = []
_before: list[tuple[Any, str, Any, Any]] = []
_inside = threading.local()


def _wrap(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "now", False) or torch.compiler.is_compiling():
            return original(*args, **kwargs)
        _inside.now = True  # softmax calls softmax
        try:
            result = original(*args, **kwargs)
            for watcher in tuple(_watchers):
                watcher.observe(name, args, kwargs)
        finally:
            _inside.now = False
        return result

    return watched


def _scores(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    if name == "scaled_dot_product_attention":
        return _of_sdpa(*args, **kwargs)
    if name == "multi_head_attention_forward":
        return _of_multihead(*args, **kwargs)
    scores = args[0] if args else kwargs.get("input")
    dimension = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if not isinstance(scores, Tensor) or scores.dim() != 4 or dimension not in (-1, 3):
        return None
    return _shown(scores[0, :, :: _every(scores.shape[2])].detach().float())


def _dropout(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float:
    """Return the dropout rate that a fused attention uses; 0 of any other function."""
    if name == _PLACES[0][1]:
        return float(args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0))
    if name == "multi_head_attention_forward":
        given = dict(zip(_MULTIHEAD, args, strict=False)) | dict(kwargs)
        return float(given["dropout_p"]) if given.get("training", True) else 0.0
    return 0.0


def _every(queries: int) -> int:
    return max(1, queries // QUERIES)


def _of_sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    **_: Any,
) -> Tensor | None:
    """Return (heads, queries, keys) scores of the first sequence."""
    del value, dropout_p
    if query.dim() < 3 or query.is_nested:
        return None
    size = query.shape[-1]
    q, k = query.detach(), key.detach()
    while q.dim() > 3:
        q, k = q[0], k[0]
    if enable_gqa and q.shape[0] != k.shape[0]:
        k = k.repeat_interleave(q.shape[0] // k.shape[0], dim=0)
    every = _every(q.shape[-2])
    scores = (q[:, ::every].float() @ k.transpose(-1, -2).float()).mul_(size**-0.5 if scale is None else scale)
    if is_causal:
        scores += _causal(q.shape[-2], k.shape[-2], every, q.device)
    return scores if attn_mask is None else _shown(_masked(scores, attn_mask, every))


@functools.lru_cache(maxsize=8)
def _causal(queries: int, keys: int, every: int, device: torch.device) -> Tensor:
    """Return what hides the later keys of every so many queries, when added to their scores."""
    place = torch.arange(queries, device=device)[::every]
    later = torch.arange(keys, device=device) > place.unsqueeze(1)
    return torch.zeros(later.shape, device=device).masked_fill_(later, -torch.inf)


def _shown(scores: Tensor) -> Tensor:
    """Return scores with minus infinity for every masked key."""
    return scores.masked_fill(scores < _MASKED, -torch.inf)


def _masked(scores: Tensor, mask: Tensor, every: int) -> Tensor:
    mask = mask.detach()
    while mask.dim() > 3:
        mask = mask[0]
    if mask.shape[-2] > 1:
        mask = mask[..., ::every, :]
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -torch.inf)
    return scores + mask


def _of_multihead(*args: Any, **kwargs: Any) -> Tensor | None:
    """Return (heads, queries, keys) scores of the first sequence of an ``nn.MultiheadAttention``."""
    given = {**dict(zip(_MULTIHEAD, args, strict=False)), **kwargs}
    query, key, heads = given["query"].detach(), given["key"].detach(), given["num_heads"]
    q, k = (t if t.dim() == 2 else t[:, 0] for t in (query, key))
    width = q.shape[-1]
    if given.get("use_separate_proj_weight"):
        wq, wk = given["q_proj_weight"].detach(), given["k_proj_weight"].detach()
    else:
        wq, wk = given["in_proj_weight"].detach()[: 2 * width].split(width)
    bias = given.get("in_proj_bias")
    bq, bk = (None, None) if bias is None else bias.detach()[: 2 * width].split(width)
    every = _every(q.shape[0])
    size = width // heads
    q = F.linear(q[::every], wq, bq).float().view(-1, heads, size).transpose(0, 1)
    k = F.linear(k, wk, bk).float().view(-1, heads, size).transpose(0, 1)
    scores: Tensor = q @ k.transpose(-1, -2) * size**-0.5
    mask, padding = given.get("attn_mask"), given.get("key_padding_mask")
    if mask is not None:
        mask = mask[:heads] if mask.dim() == 3 else mask
        mask = mask[..., ::every, :]
        scores = scores.masked_fill(mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if padding is not None:
        first = padding[0] if padding.dim() == 2 else padding
        scores = scores.masked_fill(first, -torch.inf) if first.dtype == torch.bool else scores + first
    return _shown(scores)
