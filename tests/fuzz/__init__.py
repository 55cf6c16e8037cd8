"""Files and messages that were damaged at random: none ends the process, and none raises but errors of splitjoin."""
