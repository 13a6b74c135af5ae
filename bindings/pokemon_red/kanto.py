"""The map of Kanto: positions of the game's towns and routes, in squares from its north-west corner."""

__all__ = ["CORNERS", "HEIGHT", "WIDTH", "on_kanto"]

WIDTH = 436
HEIGHT = 444

# Map number in the game: x and y of its north-west corner. The positions follow from how the game connects the
# maps at their edges. The origin is the usual convention.
CORNERS = {
    0: (64, 318),  # Pallet Town
    1: (54, 246),  # Viridian City
    2: (54, 138),  # Pewter City
    3: (234, 120),  # Cerulean City
    4: (334, 200),  # Lavender Town
    5: (234, 264),  # Vermilion City
    6: (164, 192),  # Celadon City
    7: (174, 354),  # Fuchsia City
    8: (64, 426),  # Cinnabar Island
    9: (14, 84),  # Indigo Plateau
    10: (234, 192),  # Saffron City
    12: (64, 282),  # Route 1
    13: (64, 174),
    14: (94, 146),
    15: (144, 128),
    16: (244, 156),  # Route 5
    17: (244, 228),
    18: (214, 200),
    19: (274, 200),
    20: (274, 128),
    21: (334, 128),  # Route 10
    22: (274, 272),
    23: (334, 218),
    24: (294, 326),
    25: (274, 326),
    26: (214, 362),  # Route 15
    27: (124, 200),
    28: (124, 218),
    29: (124, 362),
    30: (184, 390),
    31: (84, 426),  # Route 20
    32: (64, 336),
    33: (14, 254),
    34: (14, 102),
    35: (244, 84),
    36: (264, 84),  # Route 25
}


def on_kanto(map_id: int, x: int, y: int) -> tuple[int, int] | None:
    """Return the square of Kanto for ``(x, y)`` on a map, or None inside houses and caves."""
    corner = CORNERS.get(map_id)
    if corner is None:
        return None
    return min(corner[0] + x, WIDTH - 1), min(corner[1] + y, HEIGHT - 1)
