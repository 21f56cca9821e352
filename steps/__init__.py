"""The sentences that the features are written in: few, one thought a line, the thinking left to
trials, faults and checks.

Imported once, by the suite, as `upheld.steps`.
"""
