"""Runs: a folder with all that is needed to use a model, and the verbs that make and use one.

asked       what a person asks for, and the settings that follow
creating    from raw data to a run folder that is ready to train
teaching    training it, from the start or from where it stopped, to the report at the end
run         the finished thing: predict, evaluate
comparing   two runs on the same data
display     what a person sees meanwhile
"""
