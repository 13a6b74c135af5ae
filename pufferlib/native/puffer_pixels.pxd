# Declarations of puffer_pixels.h.

from libc.stdint cimport int32_t, uint8_t
from libcpp cimport bool as c_bool

from pufferlib.native.puffer_batch cimport PufferBatch


cdef extern from "puffer_pixels.h" nogil:
    c_bool puffer_pixels_create(PufferBatch *batch, int32_t height, int32_t width, int32_t threads)
    void puffer_pixels_destroy(PufferBatch *batch)
    void puffer_draw_games(const PufferBatch *batch, int32_t begin, int32_t end)
    c_bool puffer_scale_once(const uint8_t *picture, int32_t height, int32_t width, uint8_t *small,
                             int32_t small_height, int32_t small_width)
