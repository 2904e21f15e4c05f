"""Training: one loop for every job. It knows a Task and a model, and never sees a token.

machine       the device, the precision, the threads
optimisers    AdamW and Muon; schedules of the learning rate
objective     the loss, with R-Drop and virtual adversarial training
averages      an exponential average of the weights, and the mean of checkpoints
state         all that changes while training, and its checkpoints on disk
loop          the loop: a generator of what happened
"""
