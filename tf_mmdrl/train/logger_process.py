"""A program that passes a run's numbers on to W&B or MLflow.

`train.outside_loggers` starts it, often with another Python, because neither
tool can be installed beside TF-Agents' pins. So it uses nothing of this
package. It reads lines of JSON from standard input:

  {"tool": "wandb", "name": ..., "id": ..., "directory": ..., "settings": {...}}
  {"step": 5000, "values": {"Score/evaluation": 12.5, ...}}, and more of these
  {"state": "finished"}

and answers the first with one line, {"id": ...} or {"error": ...}. If the input
ends without a state, the run was stopped.
"""

import sys

if __name__ == "__main__":
  sys.path.pop(0)  # this folder, whose files might be taken for others' modules

import json
import os
from typing import Any, Dict, Optional

PROJECT = "tf_mmdrl"


class Wandb:
  """Weights & Biases; WANDB_MODE=offline keeps all in the run's directory.

  Attributes:
    id: of the run there.
  """

  def __init__(self, begin: Dict[str, Any]):
    import wandb

    self._run = wandb.init(
      project=os.environ.get("WANDB_PROJECT", PROJECT),
      name=begin["name"],
      id=begin["id"],
      resume="allow",
      dir=begin["directory"],
      config=begin["settings"],
    )
    # A run that goes on says its last rows again, and W&B's own steps may not
    # go back.
    self._run.define_metric("step")
    self._run.define_metric("*", step_metric="step")
    self.id = self._run.id

  def log(self, step: int, values: Dict[str, float]) -> None:
    """Adds a row."""
    self._run.log({"step": step, **values})

  def end(self, is_finished: bool) -> None:
    """Waits until all is written."""
    self._run.finish(exit_code=0 if is_finished else 1)


class MLflow:
  """MLflow, where MLFLOW_TRACKING_URI says; a local folder is offline.

  Attributes:
    id: of the run there.
  """

  def __init__(self, begin: Dict[str, Any]):
    import mlflow

    self._mlflow = mlflow
    if "MLFLOW_EXPERIMENT_NAME" not in os.environ:
      mlflow.set_experiment(PROJECT)
    if begin["id"] is None:
      run = mlflow.start_run(run_name=begin["name"])
      mlflow.log_params(begin["settings"])
    else:
      run = mlflow.start_run(run_id=begin["id"])
    self.id = run.info.run_id

  def log(self, step: int, values: Dict[str, float]) -> None:
    """Adds a row."""
    self._mlflow.log_metrics(values, step=step)

  def end(self, is_finished: bool) -> None:
    """Says how the run ended."""
    self._mlflow.end_run("FINISHED" if is_finished else "KILLED")


TOOLS: Dict[str, Any] = {"wandb": Wandb, "mlflow": MLflow}


def main() -> int:
  """Passes on what comes until the input ends."""
  answers = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)  # what the tools print must not look like an answer
  begin = json.loads(sys.stdin.readline())
  try:
    tool = TOOLS[begin["tool"]](begin)
  except BaseException as error:  # all of it ends here, SystemExit included
    lines = str(error).strip().splitlines() or [type(error).__name__]
    print(json.dumps({"error": lines[0]}), file=answers, flush=True)
    return 1
  print(json.dumps({"id": tool.id}), file=answers, flush=True)
  state: Optional[str] = None
  for line in sys.stdin:
    said = json.loads(line)
    state = said.get("state")
    if state is not None:
      break
    tool.log(said["step"], said["values"])
  tool.end(state == "finished")
  return 0


if __name__ == "__main__":
  sys.exit(main())
