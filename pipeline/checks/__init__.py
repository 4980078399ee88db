"""Policies and their checks: observations in, findings out.

`observations` is all that a check may look at; one module is one check, with the model of its parameters; `catalogue`
maps names to checks; `evaluate` turns policies and observations into verdicts; `table` prints them.
"""
