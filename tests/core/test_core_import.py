import subprocess
import sys

from tf_mmdrl import core


def test_the_public_names_are_there():
  for name in core.__all__:
    assert getattr(core, name).__name__ == name


def test_errors_and_settings_come_without_tensorflow():
  code = (
    "import sys, tf_mmdrl.cli.main, tf_mmdrl.cli.train_command;"
    "import tf_mmdrl.cli.presets_command, tf_mmdrl.report.run_results;"
    "assert tf_mmdrl.cli.main.main(['agents']) == 0;"
    "assert 'tensorflow' not in sys.modules"
  )
  subprocess.run([sys.executable, "-c", code], check=True)
