"""Training speed: the product's own loop against the same work in other code, in one process.

    sizes           the sizes of the models and data, full and in miniature
    corpus          random texts whose lengths are distributed like those of real ones
    product         our side: a run prepared as `glassformer train` does it, and the loop itself
    language_model  a small task for the model that no job trains yet
    rows            the rows of a run, as its batches hold them
    padding         the same rows padded, as the peers take them
    torch_models    the same models in torch.nn
    torch_loop      their side: a plain training loop around such a model
    nanogpt         our language model against nanoGPT's, from a file of its own
    race            sides that take turns: ours, its peers, and the bars between them
    *_contests      the other contests, by kind of model
    works           all of them by name, and how one is held
    speed_report    the results as a table and as plain values

Speed is real tokens per second: padding does not count, and of pairs only the target does. Every
step is a full one: forward, backward, clipping, AdamW; single layers are forward and backward.
"""
