"""How well scores agree with people, and the cut of a score that has a wanted precision.

Everything here is a function of arrays: the scores of n pairs and their deciles, the labels that
people gave them (0 to 100), and the reference of each pair. Pairs of one reference resemble each
other, so all resampling is of references.
"""
