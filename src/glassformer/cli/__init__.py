"""The command line: thin commands around what Python can do first.

app          the command itself, its exit codes, and `mask`
options      options that several commands share; job_options: those that jobs declare
train, plan, predict, evaluate, doctor, reproduce, runs, data, bench
             a command each
inputs       what `predict` reads; answers: what it prints
results      tables of scores
output       standard output that may end early
"""

from glassformer.cli.app import main
