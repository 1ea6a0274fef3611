"""The version, alone in its file so that setup.py can read it."""

__version__ = "0.2.0.dev0"
