"""The same actors, runs and searches on several machines, by Ray."""

import os

# Ray reads these when it is imported, here and in the processes that it starts:
# nothing is reported to anyone, and who has no token is not listened to.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "token"
os.environ.setdefault("RAY_enable_metrics_collection", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
