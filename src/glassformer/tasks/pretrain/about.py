"""The name, summary and options of `pretrain`."""

from glassformer.tasks.about import About, wish
from glassformer.tasks.shared.options import ALTERNATIVES

ABOUT = About(
    name="pretrain",
    summary="Fill in masked words of raw text (a masked language model).",
    job="glassformer.tasks.pretrain.job:JOB",
    options=(ALTERNATIVES,),
    wishes=wish("pretraining, mlm, masked, masked lm, masked language model, bert, fill mask, fill")
    | wish(
        "embed, embedding, embeddings, vectors, vector, encode, encoder, similarity, search, "
        "retrieval, retrieve",
        "vectors of texts come from a trained run: learn your texts with `pretrain` or labels with "
        "`classify`, then `glassformer predict RUN --embed`",
    )
    | wish(
        "cluster, clusters, clustering, topics, topic model, topic modelling",
        "no job finds groups; learn your texts with `pretrain`, write their vectors with "
        "`glassformer predict RUN --embed`, and group these, as scikit-learn's KMeans does",
    ),
    embeds=True,
)
