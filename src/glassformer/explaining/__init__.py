"""Seeing inside: pictures of what a model looks at."""
