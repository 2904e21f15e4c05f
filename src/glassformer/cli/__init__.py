"""The command line: thin commands around what Python can do first."""

from glassformer.cli.app import main

__all__ = ["main"]
