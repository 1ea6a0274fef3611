import pathlib
import sys

_HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(_HERE))  # for `import agent_fixtures`
sys.path.insert(0, str(_HERE.parent / "ops"))  # for `import oracle`
