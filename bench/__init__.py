"""Scripts that measure, and the pages and pictures made from their figures. Run one: ``python -m bench.NAME``."""
