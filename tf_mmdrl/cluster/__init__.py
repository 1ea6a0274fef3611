"""The same actors, runs and searches on several machines, by Ray."""

import os

# Ray reads these when it is imported, here and in the processes that it starts:
# nothing is reported to anyone, and who has no token is not listened to.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "token"
os.environ.setdefault("RAY_enable_metrics_collection", "0")
# Who asked for no GPU sees none: TensorFlow would take all of its memory.
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
# Actors and runs are what the machine is for, and get their share of it. Ray
# lets all others go first: beside a learner, or a run without Ray, they starve.
os.environ.setdefault("RAY_worker_niceness", "0")
# The memory for what travels is taken at the start: were /dev/shm full later,
# Ray's processes, and the learner with them, would end without a word.
os.environ.setdefault("RAY_preallocate_plasma_memory", "1")
