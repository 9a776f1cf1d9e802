"""The tests. Helpers are imported as `tests.NAME`, so that no other module shadows them."""
