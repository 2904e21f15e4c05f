"""Runs: a folder with all that is needed to use a model, and the verbs that make and use one.

asked             what a person asks for, and the settings that follow
shorthands        one word for the settings of a stack
idle              settings that would do nothing, refused
gentle            a gentler start, for models that need one
creating          from raw data to a run folder that is ready to train
back_translation  texts of the target language, with sources that another run writes
parts             what another run learned, to begin with
pretraining       learning the texts first, where a trial shows that it helps
teaching          training it, from the start or from where it stopped
log               what happened meanwhile, a line an event
folder            what lies where in a run
run               the finished thing: predict, evaluate
evaluation        what it says about data, and how good that is
reports/          how good it is, beside an honest baseline
foresight/        what a training will take, before it begins and while it runs
listing           the runs in a folder, and what of them can go
recipes           results we stand behind, made again
folds             every row tested once, by a model that never saw it
stopping          Ctrl-C and SIGTERM as a wish to stop well
holding           a run that only one process may train at a time
limits            what a machine can run out of, said in one line
doctor            the doctor's look at raw data
display           what a person sees meanwhile
verbs             train, resume and load: all of it in one call each
"""
