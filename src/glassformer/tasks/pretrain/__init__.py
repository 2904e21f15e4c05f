"""pretrain: fill gaps in raw text.

job       the job
masking   which words are hidden, and behind what
"""
