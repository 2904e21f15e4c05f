"""The name, summary and options of `translate`."""

from glassformer.tasks.about import About, Option, wish
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
    wishes=wish(
        "translation, translator, mt, nmt, machine translation, seq2seq, sequence to sequence, "
        "text2text, g2p, phonemes, transliterate, transliteration, paraphrase, correct, spelling"
    )
    | wish(
        "summarise, summarize, summary, summarisation, summarization, headline",
        "`translate` can learn it from two columns, as in --columns source=article,target=summary, "
        "if there are many thousand rows; with fewer, use a pretrained model of another library",
    )
    | wish(
        "qa, question answering, answer, answers, squad, reading comprehension",
        "no job looks for answers in documents; `translate` can learn questions and answers as "
        "pairs from many thousand rows (--columns source=question,target=answer), and for what "
        "stands in a context use a pretrained model of another library",
    ),
)
