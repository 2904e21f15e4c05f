"""Training: one loop for every job. It knows a Task and a model, and never sees a token.

cost, memory  what a step takes: operations, bytes; what the machine has of them
machine       the device, the precision, the threads; bf16_trial: whether a CPU can do bf16
optimisers    AdamW and muon; schedules of the learning rate
objective     the loss, with R-Drop and virtual adversarial training
averages      an exponential average of the weights, and the mean of checkpoints
gradients     divided once, measured and clipped, over all batches and processes
fsdp          weights sharded over processes; ddp: the same weights in all of them
state         all that changes while training; progress: its numbers; checkpoints: it on disk
loop          the loop: a generator of what happened; meters: sums between two reports
recovery      the loop, stepping back where it diverges; trouble: what can go wrong, in words
"""
