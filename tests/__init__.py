"""The tests; helpers are imported as `tests.NAME`, so that no other module shadows them."""
