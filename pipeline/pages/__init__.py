"""What people read: the report, cards, and the words and plots on them."""
