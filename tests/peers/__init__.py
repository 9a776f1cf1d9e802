"""Translations beside those of the programs that made the models; run by hand where these are.

pip install --target DIR --no-deps pymarian subword-nmt
PYTHONPATH=.:DIR pytest tests/peers
"""
