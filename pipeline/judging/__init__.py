"""Judgments of pairs by people, and the agreement between judgments and scores."""
