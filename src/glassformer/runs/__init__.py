"""Runs: a folder with all that is needed to use a model, and how one is made and used.

In the order a run lives:

request             what is asked for, and the settings that follow
shorthands          one word for the settings of a stack
unused_settings     settings that would do nothing, refused
post_norm_defaults  a gentler start, for models that need one
folder              what lies where in a run
new_folder          a new one, whole or not at all
checksums           by which files that changed are known
lock                a run that only one process may train at a time
limits              what a machine can run out of, said in one line
display             what a person sees meanwhile
warm_start          modules of a model that another run has trained
trained             a trained model out of a folder, and its predictions
companions          other runs that a job needs, opened for it
model_size          models too large for the machine, refused before they are built
prepared            a run that is ready to train
prepare             from raw data to such a run
timing              seconds, from a few measured steps; a time as a number of steps
forecast            what the first steps say of the whole, beside what it took
log                 what happened meanwhile, a line an event
stopping            Ctrl-C and SIGTERM, which stop a training well
fit                 training it, from the start or from where it stopped
pretraining         a first stage, where a trial shows that it helps
learning_curve      whether more rows would help
report              how good it is, beside an honest baseline
evaluation          scores on new data, and the comparison of two runs
run                 the finished thing: predict, evaluate
api                 train, resume, load and align: all of it in one call each
doctor              the doctor's look at raw data
estimate, plan      what a training will take, before it begins
folds               every row tested once, by a model that never saw it
recipes             results we stand behind, made again
listing             the runs in a folder, and what of them can go
"""
