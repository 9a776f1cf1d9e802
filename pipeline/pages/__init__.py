"""The report, the cards, and the words and plots on them."""
