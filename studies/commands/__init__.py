"""Commands of `menagerie`, a file each.

A file's docstring is the command's description, `Config` its options; `run` returns the exit status; `read`, where
there is one, reads the options.
"""
