"""Data that encoders are trained and tested on, as it is published."""
