"""How a command ends."""

OK = 0
BROKEN = 1  # what is installed does not work
BAD_INPUT = 2
STOPPED = 75  # by a signal, with a checkpoint; the same command goes on
INTERRUPTED = 130
