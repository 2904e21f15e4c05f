"""The scores of given texts by an attention decoder, all at once."""

from collections.abc import Sequence

import torch

from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.models.incremental.prompt import chosen_rows, in_rows
from glassformer.models.transcriber import Heard, Transcriber

Tokens = tuple[int, ...]


def attention_scores(
    model: Transcriber, heard: Heard, texts: Sequence[Sequence[Tokens]]
) -> list[list[float]]:
    """The log-probability of every text of every row, and of its end, by the decoder."""
    device = heard.vectors.device
    rows = [row for row, some in enumerate(texts) for _ in some]
    flat = [text for some in texts for text in some]
    if not flat:
        return [[] for _ in texts]
    at = torch.tensor(rows, device=device)
    memory = [chosen_rows(in_rows(one), at) for one in model.keep(heard)]
    target = Layout.padded([len(text) + 1 for text in flat], device=device)
    tokens = torch.full((len(flat), target.longest + 1), Tokenizer.end)
    tokens[:, 0] = Tokenizer.start
    for number, text in enumerate(flat):
        tokens[number, 1 : len(text) + 1] = torch.tensor(text, dtype=torch.long)
    tokens = tokens.to(device)
    scores = model.decode(tokens[:, :-1], target, memory).float().log_softmax(-1)
    each = scores.gather(2, tokens[:, 1:, None])[:, :, 0]
    found = iter(each.masked_fill(~target.real, 0.0).sum(1).tolist())
    return [[next(found) for _ in some] for some in texts]
