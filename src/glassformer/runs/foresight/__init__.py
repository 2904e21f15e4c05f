"""What a training will take, before it begins and while it runs.

planning    parameters, memory, work and time of a training that is asked for
estimate    the records of a plan, and how they are said
timing      seconds, from a few measured steps; a time as a number of steps
rehearsal   back-translation, from a few lines
sizing      models too large for the machine, refused before they are built
prediction  the same from the first steps of a run, beside what it took
"""
