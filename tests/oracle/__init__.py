"""Checks every operation against numpy, scipy and scikit-image.

Run it with `cargo xtask oracle`, which makes a virtual environment and builds the program, or by
hand from the folder above this one: `python -m oracle --warploom PATH [OP ...]`.

    images.py   what the operations are given
    edges.py    boundary rules in scipy's words, and which axes count
    case.py     one check; an operation's declaration becomes its cases here
    ops/        the declarations: reference, parameters, types, tolerance
    judge.py    whether a result is right
    batch.py    running many cases in one process of ours
    report.py   the table, and how to repeat what failed
    selftest.py whether wrong results would be noticed
"""
