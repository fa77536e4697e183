"""The commands that make and test checkpoints and data, one a file.

A command is its options and its help; what it does is imported when it is called.
"""
