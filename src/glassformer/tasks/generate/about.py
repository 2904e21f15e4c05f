"""The name, summary and options of `generate`."""

from glassformer.tasks.about import About, Option

ABOUT = About(
    name="generate",
    summary="Continue text: a language model, from characters to pages.",
    job="glassformer.tasks.generate.job:JOB",
    options=(
        Option(
            name="alternatives",
            kind=int,
            metavar="N",
            least=0,
            help="Show N alternative answers, or tokens, with their scores.",
        ),
        Option(
            name="settings",
            flag="--set",
            metavar="decode.key=value",
            several=True,
            help="Change a decoding setting; may be repeated.",
        ),
    ),
)
