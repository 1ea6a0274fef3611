"""The exact state of pure-Python objects as plain JSON values.

An environment written in Python keeps its state in attributes: numbers,
arrays, containers, random generators, methods and further such objects.
`capture` reads them all; `restore` writes them back into an object of the same
class, in place. Whatever else it meets it refuses and names: a C++ emulator, a
window, a process, a function that keeps variables of its own, a set (whose
order depends on its past). So a captured state is never known to be incomplete.

What two attributes share they share again after `restore`.
"""

from tf_mmdrl.environments.snapshot.capturing import capture
from tf_mmdrl.environments.snapshot.parts import CannotCaptureError
from tf_mmdrl.environments.snapshot.restoring import restore

__all__ = ["CannotCaptureError", "capture", "restore"]
