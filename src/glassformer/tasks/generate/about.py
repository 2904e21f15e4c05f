"""The name, summary and options of `generate`."""

from glassformer.tasks.about import About, wish
from glassformer.tasks.shared.options import ALTERNATIVES, SETTINGS

ABOUT = About(
    name="generate",
    summary="Continue text: a language model, from characters to pages.",
    job="glassformer.tasks.generate.job:JOB",
    options=(
        ALTERNATIVES,
        SETTINGS,
    ),
    wishes=wish(
        "generation, generator, lm, clm, language model, language modelling, language modeling, "
        "gpt, llm, complete, completion, continue, text generation, write"
    )
    | wish(
        "chat, chatbot, dialogue, dialog, conversation, instruct",
        "no job follows instructions; `generate` learns to continue texts like those it was given, "
        "dialogues among them",
    ),
)
