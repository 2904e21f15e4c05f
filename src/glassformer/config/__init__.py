"""Configuration: nested frozen records, checked once on creation.

    layers      the parts of a layer
    model       the shape of a model, and its size
    data        where samples come from, and how they become batches
    decoding    how sequences are generated
    training    how a model is trained
    run         all of it, and the settings of the job: the config.toml of a run
    values      records from TOML and back, and merging of settings
    checks      checks of the values of a record
    unused      settings that a model ignores, refused
    own_code    code that a setting names, imported only when a person allows it

To vary a record, use `dataclasses.replace`.
"""

from glassformer.config.checks import at_most, choose, positive, require, share
from glassformer.config.data import DataConfig, TokenizerConfig
from glassformer.config.decoding import BeamConfig, DecodeConfig, SampleConfig
from glassformer.config.layers import (
    FEEDFORWARD_NAMES,
    KIND_NAMES,
    NORM_NAMES,
    POSITION_NAMES,
    POSITIONS_OF_KIND,
    PROJECTION_NAMES,
    SCALING_NAMES,
    SETTINGS_OF_POSITION,
    AttentionConfig,
    ConvolutionConfig,
    FeedForwardConfig,
    NormConfig,
    PositionConfig,
    ScalingConfig,
)
from glassformer.config.model import (
    BLOCK_NAMES,
    FRONTEND_NAMES,
    ORDER_NAMES,
    POOL_NAMES,
    SIZES,
    STACK_NAMES,
    STYLES,
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
