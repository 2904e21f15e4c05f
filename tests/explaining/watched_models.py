"""Small models with attention that is not uniform, and batches for them."""

import torch
from torch import nn

from glassformer.config import ModelConfig
from glassformer.config.values import build
from glassformer.core.layout import Layout
from glassformer.explaining.watching import watching
from glassformer.models.build import build_classifier, build_language_model, build_transformer

B, T, S, H, G, V = 3, 7, 11, 6, 2, 13
SOURCE, TARGET = (11, 5, 2), (3, 7, 6)
C = 5
TIGHT = {"atol": 2e-6, "rtol": 1e-4}


def stack(**settings):
    attention = {"heads": H, "kv_heads": G} | settings.pop("attention", {})
    return {"dim": 24, "depth": 1, "dropout": 0.0, "attention": attention} | settings


def shaken(model):
    """With parameters that are nowhere zero, and attention that is not uniform."""
    torch.manual_seed(5)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    return model.eval()


def translator(**settings):
    config = build(ModelConfig, {"encoder": stack(**settings), "decoder": stack(**settings)})
    return shaken(build_transformer(config, vocabulary=V))


def language_model(**settings):
    config = build(ModelConfig, {"decoder": stack(**settings)})
    return shaken(build_language_model(config, vocabulary=V))


def batch(form=Layout.padded):
    rows = torch.randint(V, (B, S)), torch.randint(V, (B, T))
    layouts = Layout.padded(SOURCE), Layout.padded(TARGET)
    if form is Layout.packed:
        rows = [ids[layout.real] for ids, layout in zip(rows, layouts, strict=True)]
        layouts = [layout.as_packed() for layout in layouts]
    return rows, dict(zip(("source", "target"), layouts, strict=True))


def classifier(**settings):
    config = build(ModelConfig, {"encoder": stack(**{"depth": 2} | settings)})
    return shaken(build_classifier(config, source=V, classes=C))


@torch.no_grad()
def whole_pass(model, ids):
    with watching(model) as (watched, maps):
        watched(ids, layout=Layout.full(*ids.shape))
    return dict(maps)
