"""The kinds of translation models: files, languages and tokens of each, one module per family.

`registry` finds the family of a model folder.
"""
