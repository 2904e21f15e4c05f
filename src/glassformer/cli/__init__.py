"""The command line: thin commands around what Python can do first.

app              the command itself, its exit codes, and `mask`
mask_expression  masks as they are typed
options          options that several commands share; job_options: those that jobs declare
train, plan, predict, evaluate, explain, compare, doctor, reproduce, runs, data, demo, serve, bench
                 a command each; bench_train, bench_generate, bench_features: parts of `bench`
bench_progress   the progress of a benchmark
inputs           what `predict` reads; answers: what it prints; answer_files: what it writes
conversation     lines that are typed, answered one at a time
results          tables of scores
studies          studies of a run: its heads, and explanations of many rows
output           standard output that may end early
"""

from glassformer.cli.app import main
