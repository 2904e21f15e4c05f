"""Text to tokens and back: `Tokenizer` for every kind of tokens, `BpeDropout` for varied ones."""

from glassformer.data.text.tokenizer import TOKENIZERS, Tokenizer
