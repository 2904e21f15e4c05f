"""What `translate` tells about itself."""

from pathlib import Path

from glassformer.tasks.about import About, Option

ABOUT = About(
    name="translate",
    summary="Turn one sequence into another: sentences, dates, words into phonemes.",
    job="glassformer.tasks.translate.job:JOB",
    options=(
        Option(
            name="alternatives",
            kind=int,
            metavar="N",
            least=0,
            help="Show N other answers with their scores.",
        ),
        Option(name="scores", kind=bool, help="Show the log-probability of every token."),
        Option(name="align", kind=bool, help="Show what each word of the answer looked at."),
        Option(
            name="picture",
            kind=Path,
            metavar="F.png",
            single=True,
            help="Draw that for one text; .svg and .pdf work, too.",
        ),
        Option(name="prefix", metavar="TEXT", help="Begin every answer with this text."),
        Option(
            name="required",
            flag="--with",
            metavar="WORD",
            several=True,
            help="Use this word in every answer; may be repeated.",
        ),
        Option(
            name="forbidden",
            flag="--without",
            metavar="WORD",
            several=True,
            help="Avoid this word; may be repeated.",
        ),
        Option(
            name="settings",
            flag="--set",
            metavar="decode.key=value",
            several=True,
            help="Change a setting of decoding; may be repeated.",
        ),
    ),
)
