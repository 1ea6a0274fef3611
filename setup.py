"""Packaging of tf-mmdrl.

Exact versions live in `constraints/`, one file per TensorFlow line; the ranges
here only say what the code is written for.
"""

import pathlib

import setuptools

_HERE = pathlib.Path(__file__).parent

_VERSION = {}
exec((_HERE / "tf_mmdrl" / "version.py").read_text(), _VERSION)

INSTALL_REQUIRES = [
  "absl-py",
  "ale-py>=0.12",
  "gymnasium>=1.1",
  "numpy<2",  # tf-agents 0.19 cannot sample a uint8 spec with numpy 2
  "tensorboard",
  "tensorflow>=2.15.1,<2.22",
  "tf-agents==0.19.0",
  "tf-keras>=2.15.1,<2.22",
]

MINATAR = ["MinAtar>=1.0.15"]
# Not gymnasium[box2d], whose pygame-ce would overwrite tf-agents' pygame.
BOX2D = ["Box2D>=2.3.10"]
PLOTS = ["matplotlib", "imageio", "imageio-ffmpeg"]
REPORT = PLOTS + ["rliable", "pandas<3"]
SERVE = ["aiohttp>=3.14", "orjson>=3.12"]
ONNX = ["tf2onnx>=1.17"]
CLUSTER = ["ray>=2.60"]
TUNE = ["optuna>=5"]
MULTI_OBJECTIVE = ["mo-gymnasium>=1.3.2"]
OFFLINE = ["h5py", "minari>=0.5.3"]
DOCS = ["mkdocs-material>=9.8", "mkdocstrings-python>=2"]
EXTRAS = {
  "minatar": MINATAR,
  "box2d": BOX2D,
  "plots": PLOTS,
  "report": REPORT,
  "serve": SERVE,
  "onnx": ONNX,
  "cluster": CLUSTER,
  "tune": TUNE,
  "mo": MULTI_OBJECTIVE,
  "offline": OFFLINE,
  "docs": DOCS,
  "reverb": ["dm-reverb==0.14.0"],  # loads with tensorflow 2.15 only
  "dev": [
    *ONNX,
    *DOCS,
    "hypothesis",
    "ipykernel",
    "mypy",
    "nbclient",
    "onnxruntime",
    # The reference that Atari observations are held to needs it; with numpy 1.
    "opencv-python-headless<4.12",
    "pytest",
    "pytest-cov",
    "pytest-xdist",
    "ruff",
  ],
}
EXTRAS["all"] = sorted(
  {
    *MINATAR,
    *BOX2D,
    *REPORT,
    *SERVE,
    *CLUSTER,
    *TUNE,
    *MULTI_OBJECTIVE,
    *OFFLINE,
  }
)

setuptools.setup(
  name="tf-mmdrl",
  version=_VERSION["__version__"],
  description=(
    "Distributional reinforcement learning via moment matching (MMDQN)"
    " for TensorFlow and TF-Agents"
  ),
  long_description=(_HERE / "README.md").read_text(),
  long_description_content_type="text/markdown",
  license="Apache-2.0",
  packages=setuptools.find_packages(include=["tf_mmdrl", "tf_mmdrl.*"]),
  package_data={
    "tf_mmdrl": [
      "py.typed",
      "report/data/*",
      "serving/data/*",
      "zoo/zoo.json",
      "zoo/exports/**/*",
    ]
  },
  python_requires=">=3.10,<3.12",
  install_requires=INSTALL_REQUIRES,
  extras_require=EXTRAS,
  entry_points={"console_scripts": ["mmdrl = tf_mmdrl.__main__:main"]},
  classifiers=[
    "Development Status :: 3 - Alpha",
    "Intended Audience :: Science/Research",
    "License :: OSI Approved :: Apache Software License",
    "Programming Language :: Python :: 3.10",
    "Programming Language :: Python :: 3.11",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
  ],
)
