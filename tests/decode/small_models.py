"""Small models with random weights, and what they say without any cache."""

import torch

from glassformer.config import AttentionConfig, ConvolutionConfig, ModelConfig, StackConfig, build
from glassformer.core.layout import Layout
from glassformer.models.build import build_language_model, build_transformer

V, D, H, END, FIRST = 13, 24, 6, 0, 1
LINEAR = AttentionConfig(heads=H, kind="linear")
LENGTHS = (5, 2, 7)  # of the sources, or of the prompts


def stack(**settings):
    attention = settings.pop("attention", AttentionConfig(heads=H, kv_heads=2))
    sizes = {"dim": D, "depth": 2, "dropout": 0.0, "max_length": 32}
    return build(StackConfig, {**sizes, "attention": attention, **settings})


def bold(model):
    """With weights so large that what was said changes what comes next."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1 and "table" not in name:
                torch.nn.init.normal_(weight, std=1.5 * weight[0].numel() ** -0.5)
    return model.eval()


def encoder_decoder(encoder=None, **settings):
    config = ModelConfig(encoder=encoder or stack(), decoder=stack(**settings), tie=False)
    return bold(build_transformer(config, vocabulary=V))


def baseline_decoder(kind):
    """An encoder of attention, and a decoder that keeps a state."""
    width = ConvolutionConfig(width=3)
    decoder = StackConfig(
        kind=kind,
        dim=D,
        depth=2,
        dropout=0.0,
        convolution=width,
        attention=AttentionConfig(heads=H),
    )
    return bold(build_transformer(ModelConfig(encoder=stack(), decoder=decoder), vocabulary=V))


def language_model(tie=False, **settings):
    return bold(build_language_model(ModelConfig(decoder=stack(**settings), tie=tie), vocabulary=V))


def sources(lengths=LENGTHS):
    """Token numbers in padded rows, and their layout."""
    return torch.randint(V, (len(lengths), max(lengths))), Layout.padded(lengths)


def prompts(lengths=LENGTHS):
    return [torch.randint(1, V, (length,)).tolist() for length in lengths]


@torch.no_grad()
def translated(model, source, rows, said):
    """Log-probabilities after each of these paths, all tokens read at once, without a cache.

    Args:
        rows: The row of each path.
        said: Paths of one length.
    """
    samples, layout = source
    tokens = torch.tensor([[FIRST, *path] for path in said])
    target = Layout.full(*tokens.shape)
    reads = Layout.padded([layout.lengths[row].item() for row in rows], longest=layout.longest)
    return model(samples[rows], tokens, source=reads, target=target).log_softmax(-1)


@torch.no_grad()
def continued(model, texts, rows, said):
    """The same for a language model: from the last token of each prompt on."""
    paths = [[*texts[row], *path] for row, path in zip(rows, said, strict=True)]
    longest, steps = max(map(len, paths)), len(said[0]) + 1
    tokens = torch.tensor([[*path, *[0] * (longest - len(path))] for path in paths])
    scores = model(tokens, layout=Layout.padded([len(path) for path in paths])).log_softmax(-1)
    lines = zip(scores, map(len, paths), strict=True)
    return torch.stack([line[length - steps : length] for line, length in lines])
