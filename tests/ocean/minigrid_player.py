"""Player of the package minigrid that knows the whole world. It reaches what random actions do not."""

import heapq

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE, DONE = range(7)
STEPS = [(1, 0), (0, 1), (-1, 0), (0, -1)]  # x and y of east, south, west, north
OBJECTS = ("key", "ball", "box")
OBSTACLE = 30  # cost of removing one, in steps


class Player:
    """Plays towards the mission, or something else that ends the episode, with some random actions."""

    def __init__(self, world, rng, noise=0.1):
        self.world, self.rng, self.noise = world, rng, noise
        self.begin()

    def begin(self):
        """Start an episode."""
        self.is_wrong = self.rng.random() < 0.25
        self.plan = []

    def act(self):
        """Return the next action."""
        actions = int(self.world.action_space.n)
        if self.plan[:1] == [FORWARD] and not self.is_wrong and self._cost(self._front()) != 1:
            self.plan = []  # an obstacle has moved there
        if self.rng.random() < self.noise or not (self.plan or self._make_plan()):
            self.plan = []
            return int(self.rng.integers(actions))
        return self.plan.pop(0)

    def _front(self):
        x, y = (int(part) for part in self.world.front_pos)
        return x, y

    def _make_plan(self):
        cell, last = self._aim()
        if cell is not None:
            self.plan = self._way(cell, last)
        return self.plan

    # ---- What to do ----------------------------------------------------------------------------------

    def _aim(self):
        """Return a cell or None, and the action in front of it. FORWARD means to enter it."""
        world = self.world
        kind = type(world).__name__
        if hasattr(world, "instrs"):
            return self._aim_at_anything() if self.is_wrong else self._aim_at_clause(self._clause(world.instrs))
        if kind == "MemoryEnv":
            return (world.failure_pos if self.is_wrong else world.success_pos), FORWARD
        if kind == "RedBlueDoorEnv":
            red, blue = (self._find(lambda cell, color=color: cell.color == color, "door") for color in ("red", "blue"))
            return (blue if self.is_wrong or world.red_door.is_open else red), TOGGLE
        if kind in ("GoToDoorEnv", "GoToObjectEnv"):
            return tuple(world.target_pos), (TOGGLE if self.is_wrong else DONE)
        if kind == "PutNearEnv":
            return self._aim_at_put_near()
        if kind == "FetchEnv":
            wanted = (world.targetType, world.targetColor)
            return self._find(lambda cell: ((cell.type, cell.color) == wanted) != self.is_wrong), PICK_UP
        if kind == "UnlockEnv":
            key = self._find(lambda _: True, "key")
            return (key, PICK_UP) if key is not None else (self._find(lambda _: True, "door"), TOGGLE)
        if kind == "PlaygroundEnv":
            return self._aim_at_anything()
        if hasattr(world, "obj"):
            return self._find(lambda cell: cell is world.obj), PICK_UP
        return self._find(lambda _: True, "lava" if self.is_wrong and self._cells("lava") else "goal"), FORWARD

    def _aim_at_anything(self):
        cells = self._cells("door", *OBJECTS)
        return cells[self.rng.integers(len(cells))] if cells else None, int(self.rng.integers(PICK_UP, DONE))

    def _clause(self, instruction):
        """Return the clause of an instruction of BabyAI that comes next."""
        if not hasattr(instruction, "instr_a"):
            return instruction
        first, second = (instruction.instr_a, instruction.a_done), (instruction.instr_b, instruction.b_done)
        if type(instruction).__name__ == "AfterInstr":
            first, second = second, first
        return self._clause(second[0] if first[1] == "success" else first[0])

    def _aim_at_clause(self, clause):
        kind = type(clause).__name__
        if kind == "PutNextInstr":
            return self._aim_at_put_next(clause)
        cell = self._find(lambda it: any(it is each for each in clause.desc.obj_set), "door", *OBJECTS)
        if kind == "GoToInstr":
            return cell, DONE
        if kind == "PickupInstr":
            return cell, PICK_UP
        door, carried = self.world.grid.get(*cell), self.world.carrying
        if not door.is_locked or (carried is not None and (carried.type, carried.color) == ("key", door.color)):
            return cell, TOGGLE
        key = self._find(lambda it: it.color == door.color, "key")
        return (key, PICK_UP) if key is not None else (self._find(lambda it: it.contains is not None), TOGGLE)

    def _aim_at_put_next(self, clause):
        world = self.world
        if not any(world.carrying is each for each in clause.desc_move.obj_set):
            return self._find(lambda it: any(it is each for each in clause.desc_move.obj_set)), PICK_UP
        around = [(x + dx, y + dy) for x, y in clause.desc_fixed.obj_poss for dx, dy in STEPS]
        free = [place for place in around if world.grid.get(*place) is None and place != tuple(world.agent_pos)]
        return (free[self.rng.integers(len(free))] if free else None), DROP

    def _aim_at_put_near(self):
        world = self.world
        x, y = world.target_pos
        if world.carrying is None:
            return tuple(world.target_pos if self.is_wrong else world.move_pos), PICK_UP
        free = [(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if world.grid.get(x + dx, y + dy) is None]
        return (free[self.rng.integers(len(free))] if free else None), DROP

    def _cells(self, *kinds):
        grid = self.world.grid
        places = ((x, y) for y in range(grid.height) for x in range(grid.width))
        return [place for place in places if grid.get(*place) is not None and grid.get(*place).type in kinds]

    def _find(self, is_wanted, *kinds):
        found = [place for place in self._cells(*(kinds or OBJECTS)) if is_wanted(self.world.grid.get(*place))]
        return found[0] if found else None

    # ---- How to get there ----------------------------------------------------------------------------

    def _way(self, cell, last, opening=()):
        """Return actions up to the first obstacle and the removal of that, or up to ``cell`` and ``last``.

        ``opening`` has the locked doors whose keys are being fetched.
        """
        path = self._path(lambda place, front: front == cell)
        if path is None:
            return []
        actions, obstacle = path
        if obstacle is None:
            if last == PICK_UP and self.world.carrying is not None:
                return self._put_down(cell)
            return [*actions, last]
        front = self.world.grid.get(*obstacle)
        carried = self.world.carrying
        if front.type != "door":
            return [*actions, PICK_UP] if carried is None else self._put_down(obstacle)
        if carried is not None and (carried.type, carried.color) == ("key", front.color):
            return [*actions, TOGGLE]
        if obstacle in opening:  # its key is behind it
            return []
        opening = (*opening, obstacle)
        key = self._find(lambda it: it.color == front.color, "key")
        if key is not None:
            return self._way(key, PICK_UP, opening)
        box = self._find(lambda it: it.contains is not None and it.contains.color == front.color, "box")
        return self._way(box, TOGGLE, opening) if box is not None else []

    def _put_down(self, kept_free):
        """Return actions that drop the object, if possible away from doors and from the cell ``kept_free``."""
        grid = self.world.grid

        def is_free(_, front):
            return grid.get(*front) is None

        def is_far_from_doors(_, front):
            around = [(front[0] + dx, front[1] + dy) for dx, dy in STEPS]
            near = [grid.get(*place) for place in around if 0 <= place[0] < grid.width and 0 <= place[1] < grid.height]
            return is_free(_, front) and kept_free not in around and not any(it and it.type == "door" for it in near)

        for suits in (is_far_from_doors, is_free):
            path = self._path(suits)
            if path is not None and path[1] is None:
                return [*path[0], DROP]
        return []

    def _cost(self, place):
        """Return the cost of entering a place, or None for never."""
        if not (0 <= place[0] < self.world.width and 0 <= place[1] < self.world.height):
            return None
        cell = self.world.grid.get(*place)
        if cell is None or cell.can_overlap():
            return None if cell is not None and cell.type == "lava" else 1
        if cell.type == "door":
            return OBSTACLE if cell.is_locked else 2
        return OBSTACLE if cell.type in OBJECTS and self.world.action_space.n > PICK_UP else None

    def _path(self, is_end):
        """Return the cheapest actions to a position and a cell in front of it, and the first obstacle on the way."""
        start = (*map(int, self.world.agent_pos), int(self.world.agent_dir))
        waiting, known = [(0, start, [], None)], set()
        while waiting:
            cost, (x, y, direction), actions, obstacle = heapq.heappop(waiting)
            if (x, y, direction) in known:
                continue
            known.add((x, y, direction))
            front = (x + STEPS[direction][0], y + STEPS[direction][1])
            if is_end((x, y), front):
                return actions, obstacle
            for action, turn in ((LEFT, 3), (RIGHT, 1)):
                steps = actions if obstacle else [*actions, action]
                heapq.heappush(waiting, (cost + 1, (x, y, (direction + turn) % 4), steps, obstacle))
            price = self._cost(front)
            if price is None:
                continue
            steps, first = actions, obstacle
            if first is None and price == OBSTACLE:
                first = front
            elif first is None:
                steps = [*actions, *([TOGGLE] if price == 2 else []), FORWARD]
            heapq.heappush(waiting, (cost + price, (*front, direction), steps, first))
        return None
