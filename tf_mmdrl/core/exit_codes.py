"""How a command ends."""

OK = 0
BAD_INPUT = 2
STOPPED = 75  # by a signal, with a checkpoint; the same command goes on
INTERRUPTED = 130
