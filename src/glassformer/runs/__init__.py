"""Runs: a folder with everything needed to use a model, and how it is created and used.

In the order of a run's life; each module imports only those above it:

own_model           a model given in Python, instead of the job's
folder              the files of a run
checksums           detects files that changed
lock                only one process may train a run at a time
limits              a full disk or memory, as a one-line error
display             progress output
settings            shorthands, defaults for models that need them, unused settings refused
request             a training request, and the settings that follow from it
arguments           a request as arguments in Python
earlier_reading     what an earlier try has read, taken over by the next one
new_folder          a new run folder, created complete or not at all
warm_start          modules of a model that another run has trained
trained             a trained model out of a folder; other runs that a job needs
model_size          models too large for the machine, refused before they are built
guessing            which jobs fit some data
first_stage         the stage before a job's own, and rows without labels for it
prepare             from raw data to a prepared run; how often and on how many rows it validates
timing              time of a few measured steps; the time budget of a command
forecast            predicted against actual time and memory
speed               how fast a training was, and what held it up
log                 training events, one JSON line each
in_training         a run in training: how it learns, what it answers by now
stopping            graceful stop on Ctrl-C, SIGTERM and SIGHUP
fit                 training, from the start or from a checkpoint
pretraining         a first stage, where a trial shows that it helps
resplit             the same run with its samples in other splits
learning_curve      whether more rows would help
refit               a second training, on the validation rows as well
verdict             the model beside the strongest simple system in each score
report              scores beside an honest baseline
evaluation          scores on new data, and the comparison of two runs
rows                rows to score models on: of some files, or of the run itself
inputs              inputs in the rows of a table
study               results of a study, which show themselves and are written as files
head_results        results about heads
row_results         how faithful methods are, and which words matter overall
heads               where the heads of a model look, what they are worth, which can go
faithfulness        how far the methods of explanation can be trusted
nearest             the training rows that are nearest to an input
explain             what predictions are based on
run                 a finished run: predict, evaluate, explain
api                 train, resume, load and align, one call each
doctor              examining raw data
estimate, plan      the cost of a training run, before it starts
folds               every row tested once, by a model that never saw it
recipes             published results, reproduced
demo                the embedded jobs, each within a time budget
listing             the runs in a folder, and what can be pruned
worker              a process that trains one prepared run
parallel            prepared runs, trained one after the other or several at once
variants            the variants of a comparison, and their settings
measuring           what a comparison measures of a run
compare_request     a comparison as requested, and its folder
comparing           means over seeds, paired differences
compare             variants of a run under the same budget, side by side
"""
