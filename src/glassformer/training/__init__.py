"""Training: one loop for every job. It knows a Task and a model, and never sees a token.

machine       device, precision and threads
bf16_trial    whether bf16 works on a CPU and is faster; bf16_work: the program that it runs
setup         the resolved settings of a run, and the events that the loop yields
fsdp          weights sharded over processes
ddp           the same weights in all processes
weights       weights by name: from a model, into a model, to disk and back
averages      the exponential moving average of the weights, and the mean of checkpoints
muon          the Muon optimiser
optimisers    AdamW and Muon behind one interface
schedules     learning rate schedules
progress      the state of a training that is not a tensor
checkpoints   checkpoints on disk
state         all state of a training: model, optimisers, average, progress
loader        batches, prepared ahead of time by threads
objective     the loss, with R-Drop and virtual adversarial training
step          forward and backward of a batch in eager mode
compiled      torch.compile for stacks and blocks
captured      a step captured as CUDA graphs
step_choice   which of these a run uses
gradients     normalised once and clipped, over all batches and processes
diverged      the error of a training that diverged
meters        running sums between two reports
validation    scores, the best checkpoints, early stopping
loop          the training loop, a generator of events
recovery      the loop, rolling back when it diverges
cost          the FLOPs and memory of a step
memory        available memory and peak usage
"""
