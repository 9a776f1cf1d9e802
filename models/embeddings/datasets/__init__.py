"""Readers of data sets for the training and evaluation of encoders."""
