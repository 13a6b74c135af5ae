"""Python model of tactical, and the parts of its observations."""

import functools

import numpy as np

SIDE = 12
CELLS = [(x, y) for y in range(SIDE) for x in range(SIDE)]
END, MOVE, EXPLODE, FLY, ROOT, WIND, RABBIT, STEP, AIM, ACTIONS = 0, 1, 145, 289, 290, 291, 292, 293, 297, 298
ITSELF, OTHER, GROUND, WALLS, SIGHT, DANGER = (slice(start, start + 144) for start in range(298, 1162, 144))
HP, AP, MP, ROOTING, SWIFT = range(1162, 1167)
OTHER_HP, OTHER_AP, OTHER_MP = range(1167, 1170)
TURN = 1172


def cell(place):
    return place[0] + SIDE * place[1]


def turned(place):
    return SIDE - 1 - place[0], SIDE - 1 - place[1]


def share(points, limit):
    """Return a share in the units of observations, 0 to 255."""
    return int(255 * points / limit + 0.5)


def steps(a, b):
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def places(plane):
    return {CELLS[i] for i in np.flatnonzero(plane)}


@functools.cache
def touched(dx, dy):
    """Return the squares touched by the line between the middles of two squares, relative to the first one."""
    found = []
    for x in range(min(0, dx), max(0, dx) + 1):
        for y in range(min(0, dy), max(0, dy) + 1):
            sides = [dx * (2 * y + b) - dy * (2 * x + a) for a in (-1, 1) for b in (-1, 1)]
            if min(sides) <= 0 <= max(sides):  # the square has corners on both sides of the line, or on it
                found.append((x, y))
    return found


def is_clear(walls, a, b):
    return not any((a[0] + x, a[1] + y) in walls for x, y in touched(b[0] - a[0], b[1] - a[1]))


@functools.cache
def seen_from(walls, place):
    return {other for other in CELLS if other != place and is_clear(walls, place, other)}


@functools.cache
def lines_from(walls, place):
    return {to for to in seen_from(walls, place) if place[0] == to[0] or place[1] == to[1]}


def ways(ground, start):
    """Return the number of steps to every place that can be reached."""
    far = {start: 0}
    queue = [start]
    for place in queue:
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            there = place[0] + dx, place[1] + dy
            if there in ground and there not in far:
                far[there] = far[place] + 1
                queue.append(there)
    return far


class Duel:
    """Game of two players in plain Python, with places as seen by the first player."""

    def __init__(self, rows, hp=2500, ap=12, mp=6, damage_reward=0.2):
        self.ground, self.walls = frozenset(places(rows[0, GROUND])), frozenset(places(rows[0, WALLS]))
        self.limits, self.damage_reward = (hp, ap, mp), damage_reward
        self.places = [*places(rows[0, ITSELF]), *places(rows[0, OTHER])]
        self.points = [{"hp": hp, "ap": ap, "mp": mp, "rooting": 0, "swift": 0} for _ in range(2)]
        self.actor = int(rows[1, TURN] == 255)
        self.turn = 1
        self.rewards = [0.0, 0.0]

    def ways(self, player):
        return ways(self.ground - {self.places[1 - player]}, self.places[player])

    def legal(self, player):
        if player != self.actor:
            return {END}
        view = turned if player else tuple
        unit, own, other = self.points[player], self.places[player], self.places[1 - player]
        sees = other in seen_from(self.walls, own)
        found = {END}
        found |= {MOVE + cell(view(there)) for there, far in self.ways(player).items() if 0 < far <= unit["mp"]}
        if unit["ap"] >= 4:
            found |= {EXPLODE + cell(view(to)) for to in seen_from(self.walls, own) if steps(own, to) <= 11}
        conditions = {
            FLY: unit["ap"] >= 3 and steps(own, other) <= 14,
            ROOT: unit["ap"] >= 2 and steps(own, other) <= 8 and sees and unit["rooting"] == 0,
            WIND: unit["ap"] >= 4 and (own[0] == other[0] or own[1] == other[1]) and sees,
            RABBIT: unit["ap"] >= 2 and unit["swift"] == 0,
        }
        found |= {action for action, holds in conditions.items() if holds}
        return found | {action for action in range(STEP, ACTIONS) if self.meaning(action) in found}

    def meaning(self, action):
        """Return the walk or explosive arrow for which a shortcut stands."""
        view = turned if self.actor else tuple
        if action == AIM:
            return EXPLODE + cell(view(self.places[1 - self.actor]))
        x, y = view(self.places[self.actor])
        dx, dy = ((0, -1), (1, 0), (0, 1), (-1, 0))[action - STEP]
        return MOVE + cell((x + dx, y + dy)) if (x + dx, y + dy) in CELLS else None

    def hurt(self, player, damage):
        lost = min(damage, self.points[player]["hp"])
        self.points[player]["hp"] -= lost
        self.rewards[player] -= self.damage_reward * lost / self.limits[0]
        self.rewards[1 - player] += self.damage_reward * lost / self.limits[0]

    def act(self, action):
        """Play a legal action, and return whether the game is over."""
        self.rewards = [0.0, 0.0]
        action = action if action < STEP else self.meaning(action)
        player = self.actor
        view = turned if player else tuple
        unit, other = self.points[player], self.points[1 - player]
        if action == END:
            unit.update(ap=self.limits[1], mp=self.limits[2])
            unit.update({name: max(0, unit[name] - 1) for name in ("rooting", "swift")})
            self.actor = 1 - player
            self.turn += 1
        elif action < EXPLODE:
            there = view(CELLS[action - MOVE])
            unit["mp"] -= self.ways(player)[there]
            self.places[player] = there
        elif action < FLY:
            unit["ap"] -= 4
            for hurt in range(2):
                if steps(view(CELLS[action - EXPLODE]), self.places[hurt]) <= 2:
                    self.hurt(hurt, 200)
        elif action == FLY:
            unit["ap"] -= 3
            self.hurt(1 - player, 100)
        elif action == ROOT:
            unit.update(ap=unit["ap"] - 2, rooting=2)
            other["mp"] = max(0, other["mp"] - 3)
        elif action == WIND:
            unit["ap"] -= 4
            self.hurt(1 - player, 400)
        else:
            unit.update(ap=unit["ap"] - 2, mp=unit["mp"] + 5, swift=4)
        alive = [points["hp"] > 0 for points in self.points]
        for player in range(2):
            self.rewards[player] += (not all(alive)) * (alive[player] - alive[1 - player])
        return not all(alive)

    def danger(self, player):
        """Return the cells that the opponent's wind arrow can hit after a walk."""
        far = ways(self.ground, self.places[1 - player])
        stands = [place for place, n in far.items() if n <= self.points[1 - player]["mp"]]
        return {to for place in stands for to in lines_from(self.walls, place)}

    def row(self, player):
        row = np.zeros(1173, np.uint8)
        view = turned if player else tuple
        planes = [
            (ITSELF, [self.places[player]]),
            (OTHER, [self.places[1 - player]]),
            (GROUND, self.ground),
            (WALLS, self.walls),
            (SIGHT, seen_from(self.walls, self.places[1 - player])),
            (DANGER, self.danger(player)),
        ]
        row[list(self.legal(player))] = 255
        for plane, marked in planes:
            row[plane][[cell(view(place)) for place in marked]] = 255
        hp, ap, mp = self.limits
        for start, unit in ((HP, self.points[player]), (OTHER_HP, self.points[1 - player])):
            shares = unit["hp"] / hp, unit["ap"] / ap, unit["mp"] / (mp + 5), unit["rooting"] / 4, unit["swift"] / 4
            row[start : start + 5] = np.floor(np.array([*shares[:3], 0, 0]) * 255 + 0.5)
            row[start + 3 : start + 5] = [63 * unit["rooting"], 63 * unit["swift"]]
        row[TURN] = 255 * (player == self.actor)
        return row
