"""The server: trained runs over HTTP, in the forms of OpenAI's API where there is one.

    settings        limits, batching, and the memory of the engine
    errors          refusals, and the form of every error
    invalid         what is wrong with a request that does not fit its path
    worker          the one thread that calls models
    batching        requests that come within moments of each other are answered as one batch
    cancelling      calls that end once nobody waits for their answer
    generation      everything that is written token by token, through the engine
    threads         how many compute a step
    sources         texts from what an encoder has read, through the engine
    models          the runs that are served, and how one is replaced by a newer one
    waiting         answers within a time limit, for clients that are still there
    schemas         what clients send
    predictions     /v1/<job>: inputs in, predictions out
    completions     /v1/completions, also as a stream
    embeddings      /v1/embeddings
    explanations    /v1/explain: what a prediction is based on
    audio, images   uploads as samples
    transcriptions  /v1/audio/transcriptions: text, subtitles, times of words
    training        /v1/training: runs as they learn
    page            what a browser shows at /
    operations      models, health, metrics, reloading
    keys            who may send requests
    gate            how much is accepted: size, number and time of requests
    direct          requests that fit, without the way through the framework
    metrics         what Prometheus reads
    protocol        connections that send or read too slowly, and clients that leave
    reference       the OpenAPI document as a page
    app             all of it as one application
    lifecycle       starting, draining, stopping

Models are called by one thread at a time, in steps; the event loop waits for none that takes longer
than about a millisecond. To serve a job in a form of its own, its predictor takes on one of the
abilities in `tasks.served`.
"""
