"""recommend: ratings of items, and the next items of a user.

job           the job
about         its name, summary and options
settings      its settings and defaults
data          users, items, ratings and times as samples
checks        what the doctor looks for
names         users and items by name
interactions  who took what, when, as numbers
histories     what each user took before, kept in the run
questions     held-out rows, each with what is known before it
factors       a vector and a bias for each user and item
new_users     the vector of a user who was not there in training
sasrec        the next item by a decoder
task          what training needs
answers       ratings, ranks and lists for held-out rows
baselines     popularity, the mean of an item; least_squares: alternating least squares
predictor     the next items of a user, and items like another
picture       the first two features of the items
reporter      the report
"""
