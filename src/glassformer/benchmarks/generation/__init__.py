"""Generation speed: our decoding against other libraries with the same weights, in one process.

    contest         what is generated, by whom, and the bars
    llama           a language model of Llama's kind with random weights, as Hugging Face has it
    hugging_face    its `generate`
    ours            the same weights in our model, and our decoding
    gptfast         the same in gpt-fast's model, from a file of its own
    correctness     whether every token is the likeliest one, by a reference
    loop_contests   equal prompts through the decoding loop
    engine_contest  requests of many lengths through the engine
    works           all contests by name, and how one is held
    report          the results as a table and as plain values

Speed is generated tokens per second, reading the prompts included. No model ever generates an end,
so that all of them write the same number of tokens.
"""
