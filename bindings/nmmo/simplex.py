"""Simplex noise in two dimensions, from which the terrain is generated.

nmmo uses the package vec-noise, whose source distribution no longer builds. This code uses single precision and the
same order of operations as that package, so that the worlds are bit-identical.

Sources: Perlin, "Improving Noise" (2002), https://doi.org/10.1145/566654.566636 (the permutation). Gustavson, "Simplex
noise demystified" (2005) (the method and the gradients).
"""

from types import ModuleType

import numpy as np
import numpy.typing as npt

__all__ = ["as_vec_noise", "snoise2"]

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

_SKEW = np.float32((np.sqrt(3.0) - 1.0) / 2.0)  # from the plane to the triangular grid
_UNSKEW = np.float32((3.0 - np.sqrt(3.0)) / 6.0)  # and back
_SCALE = np.float32(70.0)  # makes the noise span -1 to 1

_NUMBERS = """
151 160 137 91 90 15 131 13 201 95 96 53 194 233 7 225 140 36 103 30 69 142 8 99 37 240 21 10 23 190 6 148 247 120
234 75 0 26 197 62 94 252 219 203 117 35 11 32 57 177 33 88 237 149 56 87 174 20 125 136 171 168 68 175 74 165 71
134 139 48 27 166 77 146 158 231 83 111 229 122 60 211 133 230 220 105 92 41 55 46 245 40 244 102 143 54 65 25 63
161 1 216 80 73 209 76 132 187 208 89 18 169 200 196 135 130 116 188 159 86 164 100 109 198 173 186 3 64 52 217 226
250 124 123 5 202 38 147 118 126 255 82 85 212 207 206 59 227 47 16 58 17 182 189 28 42 223 183 170 213 119 248 152
2 44 154 163 70 221 153 101 155 167 43 172 9 129 22 39 253 19 98 108 110 79 113 224 232 178 185 112 104 218 246 97
228 251 34 242 193 238 210 144 12 191 179 162 241 81 51 145 235 249 14 239 107 49 192 214 31 181 199 106 157 184 84
204 176 115 121 50 45 127 4 150 254 138 236 205 93 222 114 67 29 24 72 243 141 128 195 78 66 215 61 156 180
"""
_PERMUTATION = np.array([int(number) for number in _NUMBERS.split()])
_HASH = np.concatenate([_PERMUTATION, _PERMUTATION])  # doubled, so that the sum of two entries needs no modulo

# Directions to the midpoints of a cube's edges, projected to the plane.
_GRADIENTS = np.array(
    [(1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (0, 1), (0, -1)], np.float32
)


def snoise2(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Return noise from -1 to 1 at the points ``(x, y)``, which are broadcast against each other."""
    x, y = np.asarray(x, np.float32), np.asarray(y, np.float32)
    skew = (x + y) * _SKEW
    column, row = np.floor(x + skew), np.floor(y + skew)
    unskew = (column + row) * _UNSKEW
    # Offsets of the point from the three corners of its triangle.
    x0, y0 = x - (column - unskew), y - (row - unskew)
    is_lower = x0 > y0
    x1, y1 = x0 - is_lower.astype(np.float32) + _UNSKEW, y0 - (~is_lower).astype(np.float32) + _UNSKEW
    x2, y2 = (start + _UNSKEW * np.float32(2) - np.float32(1) for start in (x0, y0))
    i, j = column.astype(np.int64) & 255, row.astype(np.int64) & 255
    total = _corner(x0, y0, i, j) + _corner(x1, y1, i + is_lower, j + ~is_lower) + _corner(x2, y2, i + 1, j + 1)
    noise: Floats = total * _SCALE
    return noise


def _corner(x: Floats, y: Floats, i: Integers, j: Integers) -> Floats:
    """Return the contribution of the grid corner ``(i, j)`` at the offset ``(x, y)`` from it."""
    gradient = _GRADIENTS[_HASH[i + _HASH[j]] % len(_GRADIENTS)]
    nearness = np.maximum(np.float32(0.5) - x * x - y * y, np.float32(0))
    added: Floats = nearness * nearness * nearness * nearness * (gradient[..., 0] * x + gradient[..., 1] * y)
    return added


def as_vec_noise() -> ModuleType:
    """Return a module with the functions of vec-noise that nmmo uses."""
    module = ModuleType("vec_noise")
    vars(module)["snoise2"] = snoise2
    return module
