"""Published data sets for training and testing encoders."""
