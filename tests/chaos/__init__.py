"""Kills at random moments: a streaming join whose JVM or Python workers are killed gives exactly the right rows."""
