"""Ray's own command line, without the server for Ray's remote clients.

  python -m tf_mmdrl.cluster.ray_command start --head ...

`ray start --head` begins that server, at port 10001, wherever gRPC is
installed, and has no option against it. Nothing here uses it, so it would only
be one more door.
"""

import sys

from ray.scripts import scripts


def main() -> int:
  """Runs the command."""
  scripts.get_ray_client_dependency_error = lambda: ImportError("unwanted")
  return scripts.main()


if __name__ == "__main__":
  sys.exit(main())
