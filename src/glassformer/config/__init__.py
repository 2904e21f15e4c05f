"""Configuration: frozen records, nested, checked once when they are made.

    model       the shape of a model, with one dial: its size
    data        where samples come from, and how they become batches
    decoding    how sequences are written
    training    how a model learns
    values      records from TOML and back, and settings laid over one another

To vary a record, use `dataclasses.replace`.
"""

from glassformer.config.checks import at_most, choose, positive, require, share
from glassformer.config.data import DataConfig, TokenizerConfig
from glassformer.config.decoding import BeamConfig, DecodeConfig, SampleConfig
from glassformer.config.model import (
    BLOCK_NAMES,
    FEEDFORWARD_NAMES,
    FRONTEND_NAMES,
    KIND_NAMES,
    NORM_NAMES,
    ORDER_NAMES,
    POOL_NAMES,
    POSITION_NAMES,
    POSITIONS_OF_KIND,
    SIZES,
    STACK_NAMES,
    AttentionConfig,
    ConvolutionConfig,
    FeedForwardConfig,
    FrontendConfig,
    ModelConfig,
    StackConfig,
    encoder_decoder_of_size,
    stack_of_size,
)
from glassformer.config.training import (
    MachineConfig,
    OptimiserConfig,
    RegulariserConfig,
    TrainConfig,
    VirtualAdversaryConfig,
)
from glassformer.config.values import build, read

__all__ = [
    "BLOCK_NAMES",
    "FEEDFORWARD_NAMES",
    "FRONTEND_NAMES",
    "KIND_NAMES",
    "NORM_NAMES",
    "ORDER_NAMES",
    "POOL_NAMES",
    "POSITIONS_OF_KIND",
    "POSITION_NAMES",
    "SIZES",
    "STACK_NAMES",
    "AttentionConfig",
    "BeamConfig",
    "ConvolutionConfig",
    "DataConfig",
    "DecodeConfig",
    "FeedForwardConfig",
    "FrontendConfig",
    "MachineConfig",
    "ModelConfig",
    "OptimiserConfig",
    "RegulariserConfig",
    "SampleConfig",
    "StackConfig",
    "TokenizerConfig",
    "TrainConfig",
    "VirtualAdversaryConfig",
    "at_most",
    "build",
    "choose",
    "encoder_decoder_of_size",
    "positive",
    "read",
    "require",
    "share",
    "stack_of_size",
]
