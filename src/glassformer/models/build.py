"""From a configuration to a model; attention stacks are initialised for their depth."""

from typing import cast

from torch import nn

from glassformer.config import ModelConfig, StackConfig, choose, require
from glassformer.config.own_code import is_own, load_code
from glassformer.errors import GlassformerError
from glassformer.models.baselines import BASELINE_DECODERS, BASELINE_ENCODERS, BaselineDecoder
from glassformer.models.ensemble import ensemble_of
from glassformer.models.frontends import (
    Frontend,
    MelResNet,
    NgramTokens,
    Patches,
    Subsampling,
    TimeSubsampling,
    Tokens,
)
from glassformer.models.frontends.words import Spelling, WordPhrases
from glassformer.models.initialise import initialise
from glassformer.models.pooling import POOLS
from glassformer.models.stacks import Decoder, Encoder
from glassformer.models.transcriber import Transcriber
from glassformer.models.transformer import Classifier, LanguageModel, MaskedModel, Transformer
from glassformer.models.word_level import WordEncoder, WordPool


def build_encoder(config: StackConfig) -> nn.Module:
    """An encoder of any kind."""
    if config.kind != "attention":
        return BASELINE_ENCODERS[config.kind](config)
    encoder = Encoder(config)
    initialise(encoder, config.depth)
    return encoder


def build_decoder(
    config: StackConfig, *, memory_dim: int | None = None
) -> Decoder | BaselineDecoder:
    """A decoder of any kind; encoders and decoders of different kinds can be combined."""
    if config.kind != "attention":
        choose("decoder kind", config.kind, tuple(BASELINE_DECODERS))
        return BASELINE_DECODERS[config.kind](config, memory_dim=memory_dim)
    require(
        config.attention.kind != "linformer",
        "linformer attention cannot decode from left to right; use softmax or linear instead",
    )
    require(
        config.block == "transformer",
        f"a {config.block} block looks ahead and cannot decode; use block = transformer",
    )
    decoder = Decoder(config, memory_dim=memory_dim)
    initialise(decoder, config.depth)
    return decoder


def build_transformer(
    config: ModelConfig, *, vocabulary: int, source: int | Frontend | None = None
) -> Transformer:
    """An encoder-decoder.

    Args:
        vocabulary: Size of the target vocabulary.
        source: Size of the source vocabulary, by default the same; or a custom frontend.
    """
    reads, writes = needed("encoder", config.encoder), needed("decoder", config.decoder)
    require(
        not config.share or source is None,
        "share = true reads with the decoder's embedding, but a source was given; drop one of them",
    )
    target = output_tokens(config, vocabulary, writes.dim)
    frontend: Frontend = target
    if not config.share:
        frontend = build_frontend(config, reads.dim, vocabulary if source is None else source)
    encoder, decoder = build_encoder(reads), build_decoder(writes, memory_dim=reads.dim)
    return Transformer(frontend, encoder, target, decoder, tie=config.tie)


def build_language_model(config: ModelConfig, *, vocabulary: int) -> LanguageModel:
    """A decoder only."""
    refuse_other_frontend(config)
    writes = needed("decoder", config.decoder)
    tokens = output_tokens(config, vocabulary, writes.dim)
    return LanguageModel(tokens, cast(Decoder, build_decoder(writes)), tie=config.tie)


def build_masked_model(config: ModelConfig, *, vocabulary: int) -> MaskedModel:
    """An encoder only, which predicts masked tokens."""
    refuse_other_frontend(config)
    reads = needed("encoder", config.encoder)
    frontend = output_tokens(config, vocabulary, reads.dim)
    return MaskedModel(frontend, build_encoder(reads), tie=config.tie)


def build_classifier(
    config: ModelConfig,
    *,
    classes: int,
    source: int | Frontend | None = None,
    spelling: Spelling | None = None,
) -> Classifier:
    """An encoder with one prediction for the whole sequence, or an ensemble of them.

    Args:
        source: Size of the source vocabulary, or a custom frontend.
        spelling: How words are written in the tokens of the source, if members read words.
    """
    reads, words = needed("encoder", config.encoder), config.frontend.word_grams
    require(
        config.members == 1 or source is None or isinstance(source, int),
        f"members = {config.members} needs as many frontends, but one was given; use members = 1",
    )
    require(
        not words or spelling is not None,
        "members that read words need the spelling of the tokens; pass it as `spelling`",
    )
    require(
        not words or config.members > 1,
        "frontend.word_grams is for every second member of an ensemble, but members = 1; set "
        "members to 2 or more",
    )

    def member(number: int) -> Classifier:
        reads_words = words > 0 and number % 2 == 1
        if reads_words:
            assert spelling is not None
            frontend = word_frontend(config, reads.dim, spelling, salt=number)
        else:
            frontend = build_frontend(config, reads.dim, source, salt=number)
        encoder, pool = build_encoder(reads), POOLS[config.pool](reads.dim)
        if reads_words:
            encoder, pool = WordEncoder(encoder), WordPool(pool)
        return Classifier(frontend, encoder, pool, nn.Linear(reads.dim, classes))

    return ensemble_of([member(number) for number in range(config.members)])


def build_transcriber(config: ModelConfig, *, vocabulary: int) -> Transcriber:
    """An encoder of sound that scores tokens at every frame; with a decoder if there is one."""
    reads, writes = needed("encoder", config.encoder), config.decoder
    frontend = build_frontend(config, reads.dim, None)
    encoder = build_encoder(reads)
    if writes is None:
        return Transcriber(frontend, encoder, vocabulary)
    return Transcriber(
        frontend,
        encoder,
        vocabulary,
        target=output_tokens(config, vocabulary, writes.dim),
        decoder=build_decoder(writes, memory_dim=reads.dim),
        tie=config.tie,
    )


def output_tokens(config: ModelConfig, vocabulary: int, dim: int) -> Tokens:
    """The embedding of tokens that are read and scored."""
    return Tokens(vocabulary, dim, scale=config.scale, softcap=config.softcap)


def build_frontend(
    config: ModelConfig, dim: int, source: int | Frontend | None, *, salt: int = 0
) -> Frontend:
    """The given frontend, or the one in the settings; a frontend of tokens needs a vocabulary.

    Args:
        salt: Of the hash of n-grams.
    """
    if source is not None and not isinstance(source, int):
        return source
    f = config.frontend
    if is_own(f.kind):
        return own_frontend(f.kind, f.channels, dim)
    match f.kind:
        case "subsampling":
            return Subsampling(f.bins, dim, factor=f.factor)
        case "conv1d":
            return TimeSubsampling(f.bins, dim, channels=f.hidden, depth=f.factor.bit_length() - 1)
        case "resnet":
            return MelResNet(f.bins, dim, channels=f.hidden, depth=f.factor.bit_length() - 1)
        case "patches":
            return Patches(
                f.channels,
                dim,
                size=f.patch,
                image=(f.height, f.width),
                first=config.pool == "first",
                position=f.position,
            )
    if source is None:
        raise GlassformerError("a frontend of tokens needs a vocabulary size; pass it as `source`")
    if f.kind == "ngrams":
        hashed = {"longest": f.grams, "buckets": f.buckets, "salt": salt}
        return NgramTokens(source, dim, scale=config.scale, **hashed)
    return Tokens(source, dim, scale=config.scale)


def word_frontend(config: ModelConfig, dim: int, spelling: Spelling, *, salt: int) -> Frontend:
    """The frontend of members that read words."""
    f = config.frontend
    hashed = {"longest": f.word_grams, "buckets": f.buckets, "salt": salt}
    return WordPhrases(spelling, dim, scale=config.scale, **hashed)


def own_frontend(kind: str, channels: int, dim: int) -> Frontend:
    """A person's own frontend, made as `Class(channels, dim)`."""
    made = load_code(kind)
    try:
        frontend: Frontend = made(channels, dim)
    except TypeError as error:
        raise GlassformerError(
            f"model.frontend.kind = {kind} cannot be made as Class(channels, dim) ({error}); see "
            f"docs/guides/custom-modalities.md"
        ) from error
    if not isinstance(frontend, nn.Module) or getattr(frontend, "dim", None) != dim:
        raise GlassformerError(
            f"model.frontend.kind = {kind} must be a module whose attribute `dim` is {dim}, the "
            f"width of the encoder; see docs/guides/custom-modalities.md"
        )
    return frontend


def refuse_other_frontend(config: ModelConfig) -> None:
    """Refuse a frontend other than tokens, which would have no effect."""
    kind = config.frontend.kind
    require(kind == "tokens", f"this model reads tokens; drop frontend.kind = {kind}")


def needed(part: str, stack: StackConfig | None) -> StackConfig:
    """The stack's settings, refused if they are missing."""
    if stack is None:
        raise GlassformerError(f"this model needs a {part}; set model.{part}")
    return stack
