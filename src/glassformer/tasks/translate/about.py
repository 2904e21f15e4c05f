"""The name, summary and options of `translate`."""

from glassformer.tasks.about import About, Option
from glassformer.tasks.shared.options import ALIGN, ALTERNATIVES, PICTURE, SETTINGS

ABOUT = About(
    name="translate",
    summary="Turn one sequence into another: sentences, dates, words into phonemes.",
    job="glassformer.tasks.translate.job:JOB",
    options=(
        ALTERNATIVES,
        Option(name="scores", kind=bool, help="Show the log-probability of every token."),
        ALIGN,
        PICTURE,
        Option(name="prefix", metavar="TEXT", help="Start every answer with this text."),
        Option(
            name="required",
            flag="--with",
            metavar="WORD",
            several=True,
            help="Require this word in every answer; may be repeated.",
        ),
        Option(
            name="forbidden",
            flag="--without",
            metavar="WORD",
            several=True,
            help="Forbid this word in every answer; may be repeated.",
        ),
        SETTINGS,
    ),
)
