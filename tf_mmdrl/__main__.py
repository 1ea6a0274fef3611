"""`python -m tf_mmdrl` is the `mmdrl` command."""

import sys

from tf_mmdrl.cli import main

if __name__ == "__main__":
  sys.exit(main.main())
