"""The name, summary and options of `classify`."""

from glassformer.tasks.about import About, wish
from glassformer.tasks.shared.options import ALTERNATIVES

ABOUT = About(
    name="classify",
    summary="Predict one or more labels for a text or a recording.",
    job="glassformer.tasks.classify.job:JOB",
    options=(ALTERNATIVES,),
    wishes=wish(
        "classification, classifier, categorise, categorize, label, labels, labelling, labeling, "
        "text classification, sentiment, intent, emotion, spam, topic, language identification, "
        "audio classification"
    )
    | wish(
        "regress, regression, regressor, estimate, estimation, score, number, numbers",
        "no job predicts numbers; put them into a few bins, such as low, middle and high, and "
        "learn the bins as labels with `classify`, or use another library",
    )
    | wish(
        "tabular, table, tables",
        "no job reads columns of numbers; `classify` reads one column of texts, and for tables "
        "there is for example scikit-learn's HistGradientBoostingClassifier",
    ),
    embeds=True,
)
