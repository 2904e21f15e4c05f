"""How good a run is, in `report.json` and `report.html`.

reporting   the report at the end, beside an honest baseline on the same rows
reporters   what a report of each job shows
baselines   the baselines, trained on the rows of a run
curve       the same on fewer rows: would more data help?
"""
