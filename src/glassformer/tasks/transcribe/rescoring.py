"""The scores of given texts by an attention decoder, all at once."""

from collections.abc import Sequence

import torch

from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.tasks.transcribe.listened import Listened

Tokens = tuple[int, ...]


def attention_scores(sounds: Listened, texts: Sequence[Sequence[Tokens]]) -> list[list[float]]:
    """The log-probability of every text of every row, and of its end, by the decoder."""
    device = sounds.frames.device
    rows = [row for row, some in enumerate(texts) for _ in some]
    flat = [text for some in texts for text in some]
    if not flat:
        return [[] for _ in texts]
    target = Layout.padded([len(text) + 1 for text in flat], device=device)
    tokens = torch.full((len(flat), target.longest + 1), Tokenizer.end)
    tokens[:, 0] = Tokenizer.start
    for number, text in enumerate(flat):
        tokens[number, 1 : len(text) + 1] = torch.tensor(text, dtype=torch.long)
    tokens, at = tokens.to(device), torch.tensor(rows, device=device)
    scores = sounds.decode(tokens[:, :-1], target, at).float().log_softmax(-1)
    each = scores.gather(2, tokens[:, 1:, None])[:, :, 0]
    found = iter(each.masked_fill(~target.real, 0.0).sum(1).tolist())
    return [[next(found) for _ in some] for some in texts]
