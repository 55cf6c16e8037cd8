"""Joins of whole tables: in one call, as a SELECT, and the explanation of how a query runs."""
