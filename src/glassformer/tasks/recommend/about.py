"""The name, summary and options of `recommend`."""

from glassformer.tasks.about import About, Option, wish
from glassformer.tasks.shared.options import ALTERNATIVES, PICTURE

ABOUT = About(
    name="recommend",
    summary="Predict ratings and a user's next items, from ratings or purchases.",
    job="glassformer.tasks.recommend.job:JOB",
    options=(
        ALTERNATIVES,
        PICTURE,
        Option(
            name="likes",
            metavar="ITEM",
            several=True,
            help="An item that the user likes, or ITEM=RATING; may be repeated.",
        ),
        Option(
            name="similar",
            kind=bool,
            help="Show the items most similar to each input, which is an item.",
        ),
    ),
    wishes=wish(
        "recommender, recommendation, recommendations, rank, ranking, ratings, "
        "collaborative filtering, matrix factorisation, matrix factorization"
    ),
)
