"""Mazes with several sources of reward, after those of MD3QN.

Zhang et al., "Distributional Reinforcement Learning for Multi-Dimensional
Reward Functions", 2021, evaluate joint return distributions in such mazes: a
source pays once, a cell that was left is closed, and doors may be one-way. The
maps here were drawn for this library from that description:

* `exclusive`: every fork pays one of two sources, never both.
* `inclusive`: one way of every fork pays both sources, the other one neither.
* `constrained`: three sources, and ways that chance decides. Three regions pay
  the first two sources independently (both with 0.36), only together (0.5) or
  mostly one of them (0.3, though each with 0.65); the third is there to take.
"""

import functools
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import gymnasium
import numpy as np
from gymnasium import spaces

from tf_mmdrl.core import errors

UP, LEFT, DOWN, RIGHT = range(4)
_MOVES = {UP: (-1, 0), LEFT: (0, -1), DOWN: (1, 0), RIGHT: (0, 1)}
# Doors between neighbours, and the directions in which each can be passed.
_DOORS = {
  ">": (RIGHT,),
  "<": (LEFT,),
  "-": (LEFT, RIGHT),
  "v": (DOWN,),
  "^": (UP,),
  "|": (UP, DOWN),
}
_PIXELS = 84
_COLOURS = {  # of what a cell shows
  "wall": (40, 40, 40),
  "open": (255, 255, 255),
  "closed": (140, 140, 140),
  "agent": (20, 60, 200),
  "exit": (230, 230, 120),
}
_SOURCES = ((120, 220, 120), (240, 130, 130), (130, 190, 250), (240, 190, 110))

Cell = Tuple[int, int]


class Map(NamedTuple):
  """A maze as drawn.

  Attributes:
    drawing: cells on even rows and columns, doors between them. S start, E
      exit, a digit a source of reward, a letter a cell where chance decides, a
      dot any other cell, and nothing where there is none.
    rewards: (lowest, highest) of each source; each payment is uniform between.
    chances: letter -> {direction: probability}; actions do not matter there.
  """

  drawing: str
  rewards: Tuple[Tuple[float, float], ...]
  chances: Dict[str, Dict[int, float]]


_PAIR = ((0.2, 0.6), (0.4, 0.9))
MAPS: Dict[str, Map] = {
  "exclusive": Map(
    """
S>1
v v
2>.>1
  v v
  2>.>1
    v v
    2>.>1
      v v
      2>E
""",
    _PAIR,
    {},
  ),
  "inclusive": Map(
    """
S>1>2
v   v
.>.>.>1>2
    v   v
    .>.>.>1>2
        v   v
        .>.>E
""",
    _PAIR,
    {},
  ),
  "constrained": Map(
    """
1>. 2>. 3>E
^ v ^ v ^
l>.>m>.>.>E
^
S>r>1>2>.>E
v v     v
. .>E   3>E
v       ^
a>1>2>.>.>E
v       ^
b>1>.>.>.
v       ^
2>.>.>.>.
""",
    ((1.0, 1.0),) * 3,
    {
      "l": {UP: 0.6, RIGHT: 0.4},
      "m": {UP: 0.6, RIGHT: 0.4},
      "r": {RIGHT: 0.5, DOWN: 0.5},
      "a": {RIGHT: 0.3, DOWN: 0.7},
      "b": {RIGHT: 0.5, DOWN: 0.5},
    },
  ),
}
ENV_IDS = {name: f"tf_mmdrl/Maze{name.title()}-v0" for name in MAPS}


class Maze(gymnasium.Env):
  """One maze; actions: up, left, down, right.

  An action without an open door does nothing. An episode ends at an exit, or
  where no way is left.

  Observations are the maze's cells as features, float32 of zeros and ones:
  where the agent is, which cells are closed, and where each source is still to
  take; or pictures, [84, 84, 3] uint8.

  Attributes:
    reward_space: of vectors, one part for each source.
  """

  metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 5}

  def __init__(
    self,
    maze: str = "exclusive",
    *,
    pixels: bool = False,
    render_mode: Optional[str] = None,
  ):
    """Makes a maze.

    Args:
      maze: one of `MAPS`.
      pixels: whether observations are pictures.
      render_mode: "rgb_array" for `render`.
    """
    if maze not in MAPS:
      raise errors.unknown_name("maze", maze, MAPS)
    self._maze = maze  # its state is saved, the map's tables need not be
    self._start = next(c for c, kind in self._cells.items() if kind == "S")
    self._pixels = pixels
    self.render_mode = render_mode
    rows, columns = zip(*self._cells)
    self.shape = (max(rows) + 1, max(columns) + 1)
    number = len(self._plan.rewards)
    highest = np.array([high for _, high in self._plan.rewards], np.float32)
    self.reward_space = spaces.Box(np.zeros(number, np.float32), highest)
    self.action_space = spaces.Discrete(4)
    if pixels:
      shape = (_PIXELS, _PIXELS, 3)
      self.observation_space = spaces.Box(0, 255, shape, np.uint8)
    else:
      size = self.shape[0] * self.shape[1] * (2 + number)
      self.observation_space = spaces.Box(0, 1, (size,), np.float32)
    self._position = self._start
    self._closed: List[Cell] = []
    self._taken: List[Cell] = []

  def reset(
    self, *, seed: Optional[int] = None, options: Optional[dict] = None
  ) -> tuple[np.ndarray, dict[str, Any]]:
    """Starts anew, with all sources full and all cells open."""
    super().reset(seed=seed)
    self._position, self._closed, self._taken = self._start, [], []
    return self._observation(), {}

  def step(
    self, action: int
  ) -> tuple[np.ndarray, np.ndarray, bool, bool, dict[str, Any]]:
    """Goes through a door, if there is one."""
    reward = np.zeros(len(self._plan.rewards), np.float32)
    chances = self._plan.chances.get(self._cells[self._position])
    if chances is not None:
      action = self.np_random.choice([*chances], p=[*chances.values()])
    if action in self.open_ways(self._position, self._closed):
      self._closed.append(self._position)
      self._position = _moved(self._position, action)
      source = self.source(self._position)
      if source is not None:
        reward[source] = self.np_random.uniform(*self._plan.rewards[source])
        self._taken.append(self._position)
    over = self.is_end(self._position, self._closed)
    return self._observation(), reward, over, False, {}

  @property
  def _plan(self) -> Map:
    return MAPS[self._maze]

  @property
  def _cells(self) -> Dict[Cell, str]:
    return read(self._plan.drawing)[0]

  @property
  def _doors(self) -> Dict[Cell, List[int]]:
    return read(self._plan.drawing)[1]

  @property
  def start(self) -> Cell:
    """Where episodes begin."""
    return self._start

  def open_ways(self, cell: Cell, closed: List[Cell]) -> List[int]:
    """Directions in which a cell can be left, given the closed ones."""
    return [way for way in self._doors[cell] if _moved(cell, way) not in closed]

  @property
  def ways(self) -> List[int]:
    """Directions in which the agent can go now; chance may choose another."""
    return self.open_ways(self._position, self._closed)

  def outcomes(
    self, cell: Cell, action: int, closed: List[Cell]
  ) -> List[Tuple[float, Cell]]:
    """(probability, next cell) of an action; for dynamic programming."""
    chances = self._plan.chances.get(self._cells[cell], {action: 1.0})
    ways = self.open_ways(cell, closed)
    return [
      (share, _moved(cell, way) if way in ways else cell)
      for way, share in chances.items()
    ]

  def source(self, cell: Cell) -> Optional[int]:
    """Which source of reward a cell is, from 0; None if it is none."""
    kind = self._cells[cell]
    return int(kind) - 1 if kind.isdigit() else None

  def is_end(self, cell: Cell, closed: List[Cell]) -> bool:
    """Whether an episode is over in a cell."""
    return self._cells[cell] == "E" or not self.open_ways(cell, closed)

  def render(self) -> Optional[np.ndarray]:
    """[84, 84, 3] uint8."""
    return None if self.render_mode is None else self._picture()

  def _observation(self) -> np.ndarray:
    if self._pixels:
      return self._picture()
    planes = np.zeros([2 + len(self._plan.rewards), *self.shape], np.float32)
    planes[0][self._position] = 1
    for cell in self._closed:
      planes[1][cell] = 1
    for cell in self._cells:
      source = self.source(cell)
      if source is not None and cell not in self._taken:
        planes[2 + source][cell] = 1
    return planes.reshape([-1])

  def _picture(self) -> np.ndarray:
    size = _PIXELS // (max(self.shape) + 1)
    door = max(1, size // 4)  # the strip between two cells
    picture = np.full([_PIXELS, _PIXELS, 3], _COLOURS["wall"], np.uint8)
    for cell in self._cells:
      row, column = cell[0] * size, cell[1] * size
      inside = (
        slice(row, row + size - door),
        slice(column, column + size - door),
      )
      picture[inside] = self._colour(cell)
      for way in self._doors[cell]:  # half a strip each: one-way doors show
        half = door - door // 2
        if way == DOWN:
          picture[row + size - door : row + size - half + 1, inside[1]] = 255
        elif way == UP:
          picture[row - door // 2 : row, inside[1]] = 255
        elif way == RIGHT:
          end = column + size - half + 1
          picture[inside[0], column + size - door : end] = 255
        else:
          picture[inside[0], column - door // 2 : column] = 255
    return picture

  def _colour(self, cell: Cell) -> Tuple[int, int, int]:
    if cell == self._position:
      return _COLOURS["agent"]
    if cell in self._closed:
      return _COLOURS["closed"]
    source = self.source(cell)
    if source is not None and cell not in self._taken:
      return _SOURCES[source]
    return _COLOURS["exit" if self._cells[cell] == "E" else "open"]


@functools.cache
def read(drawing: str) -> Tuple[Dict[Cell, str], Dict[Cell, List[int]]]:
  """The kind of each cell, and the ways out of it.

  Args:
    drawing: of a `Map`.

  Returns:
    (row, column) -> its character, and -> its directions.
  """
  lines = drawing.strip("\n").split("\n")
  width = max(map(len, lines))
  lines = [line.ljust(width) for line in lines]
  cells = {
    (row // 2, column // 2): lines[row][column]
    for row in range(0, len(lines), 2)
    for column in range(0, width, 2)
    if lines[row][column] != " "
  }
  doors: Dict[Cell, List[int]] = {cell: [] for cell in cells}
  for cell in cells:
    for way, (down, right) in _MOVES.items():
      row, column = 2 * cell[0] + down, 2 * cell[1] + right
      inside = 0 <= row < len(lines) and 0 <= column < width
      if inside and way in _DOORS.get(lines[row][column], ()):
        doors[cell].append(way)
  return cells, doors


def _moved(cell: Cell, way: int) -> Cell:
  down, right = _MOVES[way]
  return cell[0] + down, cell[1] + right


for _name, _env_id in ENV_IDS.items():
  gymnasium.register(
    _env_id,
    entry_point=f"{__name__}:Maze",
    kwargs={"maze": _name},
    max_episode_steps=150,
  )
