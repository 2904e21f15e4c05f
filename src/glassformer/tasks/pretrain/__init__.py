"""pretrain: predict masked words in raw text.

job       the job
masking   which words are masked, and how
"""
