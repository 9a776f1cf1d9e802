"""The search behind `select.by: auto` (ParaNMT, section 6.3, Table 4).

`ranges` has the statistics: which ranges of deciles to evaluate, and which one to select. `search`
evaluates them on labelled pairs.
"""
