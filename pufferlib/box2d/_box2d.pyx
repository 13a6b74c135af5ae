"""Games of Gymnasium's Box2D tasks in C, shared by threads. The addresses of Box2D's functions come from the caller."""

import os

cimport cython
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as c_bool

from pufferlib.native.puffer_task cimport PUFFER_HELPER_NS, PufferHelpers, PufferTask
from pufferlib.ocean._ocean cimport shared_helpers

from pufferlib.errors import APIUsageError, PufferError

cdef extern from "puffer_numpy.h" nogil:
    ctypedef struct PufferGenerator:
        pass
    void puffer_seed_generator(PufferGenerator *generator, uint64_t seed)

cdef extern from "box2d.h" nogil:
    enum:
        BOX2D_FUNCTIONS
        BOX2D_RAYS
    ctypedef struct Box2DEngine:
        pass
    ctypedef struct Box2DOptions:
        double gravity, wind_power, turbulence_power
        double ray_x[BOX2D_RAYS]
        double ray_y[BOX2D_RAYS]
        double lap_percent
        size_t texts
        c_bool is_continuous, has_wind, is_hardcore, has_random_colors, channels_first, keeps_world
        int32_t max_steps
    ctypedef struct Box2DGame:
        PufferGenerator generator, start
        c_bool has_finished
        int32_t num_played
        uint32_t *played
    ctypedef struct Box2DTask:
        int32_t (*actions)(const Box2DOptions *options)
    ctypedef struct Box2DGames:
        Box2DEngine engine
        Box2DOptions options
        const Box2DTask *task
        Box2DGame *games
        int32_t num_actions
        int32_t *order
        uint32_t *actions
        uint8_t *observations
        float *rewards
        double *exact_rewards
        c_bool *terminals
        c_bool *truncations
        int32_t *elapsed
    void box2d_take_joints(Box2DEngine *engine)
    const Box2DTask *box2d_task(const char *name)
    void box2d_begin(const Box2DGames *games, int32_t index)
    void box2d_step(const Box2DGames *games, int32_t index, const uint32_t *actions)
    void box2d_step_some(void *games, int32_t begin, int32_t end) noexcept
    void box2d_draw(const Box2DGames *games, int32_t index, uint8_t *pixels)
    void box2d_close(const Box2DEngine *engine, Box2DGame *game)

    enum:
        PICTURE_TEXT_HEIGHT
        PICTURE_TEXT_WIDTH
        SHAPES_HEIGHT
        SHAPES_WIDTH

RAYS = BOX2D_RAYS
TEXT_SHAPE = PICTURE_TEXT_HEIGHT, PICTURE_TEXT_WIDTH
PICTURE_SHAPE = SHAPES_HEIGHT, SHAPES_WIDTH, 3


@cython.final
cdef class Box2DCopies:
    """Games of one task, and the arrays that they share, with a row for each game.

    Args:
        task: Name of the task in ``box2d.h``.
        options: Value of each field of ``Box2DOptions``.
        engine: Addresses of the functions in ``Box2DEngine``.
        num_games: Number of games.
        num_threads: Maximum number of threads that work on a step.
        affinity: Field ``affinity`` of ``PufferTask``.
    """

    cdef Box2DGames batch
    cdef PufferTask stepping
    cdef int32_t num_games
    cdef bytearray memory
    cdef object kept  # owners of the memory that addresses point to

    def __cinit__(self, str task, dict options, tuple engine, int32_t num_games, int32_t num_threads,
                  int32_t affinity=0):
        cdef size_t address
        cdef Py_ssize_t i
        assert len(engine) == BOX2D_FUNCTIONS
        for i, address in enumerate(engine):
            (<void **>&self.batch.engine)[i] = <void *>address
        box2d_take_joints(&self.batch.engine)
        self.batch.options = options
        self.batch.task = box2d_task(task.encode())
        self.batch.num_actions = self.batch.task.actions(&self.batch.options)
        self.memory = bytearray(num_games * sizeof(Box2DGame))
        self.batch.games = <Box2DGame *><char *>self.memory
        self.num_games = num_games
        self.stepping.work, self.stepping.context = box2d_step_some, &self.batch
        self.stepping.threads, self.stepping.helper_ns = num_threads, PUFFER_HELPER_NS
        self.stepping.affinity = affinity
        self._check(shared_helpers().prepare(num_threads))

    def __dealloc__(self):
        self._free()

    cdef void _free(self):
        cdef int32_t i
        for i in range(self.num_games):
            box2d_close(&self.batch.engine, &self.batch.games[i])

    def close(self):
        """Free the worlds. The games can be begun again."""
        self._free()

    def bind(self, uint8_t[:, ::1] observations, const uint32_t[:, ::1] actions, float[::1] rewards, c_bool[::1] terminals,
             c_bool[::1] truncations, double[::1] exact_rewards, int32_t[::1] elapsed):
        """Use these arrays without copying them, and keep references to them."""
        cdef Box2DGames *batch = &self.batch
        batch.observations, batch.actions = &observations[0, 0], <uint32_t *>&actions[0, 0]
        batch.rewards, batch.exact_rewards = &rewards[0], &exact_rewards[0]
        batch.terminals, batch.truncations = &terminals[0], &truncations[0]
        batch.elapsed = &elapsed[0]
        self.kept = (observations, actions, rewards, terminals, truncations, exact_rewards, elapsed)

    cdef int _check(self, int error) except -1:
        if error:
            raise PufferError(
                f"num_threads={self.stepping.threads} needs {self.stepping.threads - 1} helper threads, and one could not "
                f"be started ({os.strerror(error)}); choose a smaller num_threads, or raise the limits of this process or "
                "container on threads and memory")
        return 0

    def seed(self, int32_t index, uint64_t seed):
        """Seed the random generator of a game, like ``numpy.random.default_rng(seed)``."""
        puffer_seed_generator(&self.batch.games[index].generator, seed)

    def begin(self, int32_t index):
        """Begin an episode of a game."""
        box2d_begin(&self.batch, index)

    def step(self, const int32_t[::1] order):
        """Step the games in ``order``, each at most once, with the actions in their rows."""
        cdef const PufferHelpers *helpers = shared_helpers()
        cdef int error
        if order.shape[0] == 0:
            return
        self.batch.order, self.stepping.num_items = <int32_t *>&order[0], <int32_t>order.shape[0]
        with nogil:
            error = helpers.run(&self.stepping)
        self._check(error)

    def draw(self, int32_t index, uint8_t[:, :, ::1] picture):
        """Draw a game of LunarLander or BipedalWalker into an image of ``PICTURE_SHAPE``."""
        box2d_draw(&self.batch, index, &picture[0, 0, 0])

    def has_finished(self, int32_t index):
        """Return True if the last step of a game has finished a lap of CarRacing."""
        return self.batch.games[index].has_finished

    def save(self, int32_t index):
        """Return the generator at the start of a game's episode, and the actions since, as bytes."""
        cdef Box2DGame *game = &self.batch.games[index]
        cdef Py_ssize_t size = game.num_played * self.batch.num_actions * sizeof(uint32_t)
        return (<char *>&game.start)[:sizeof(PufferGenerator)] + (<char *>game.played)[:size]

    def load(self, int32_t index, const unsigned char[::1] state):
        """Play the episode of a result of ``save`` again.

        Raises:
            APIUsageError: The state has an impossible size.
        """
        cdef Box2DGame *game = &self.batch.games[index]
        cdef Py_ssize_t bytes_of_step = self.batch.num_actions * sizeof(uint32_t)
        cdef Py_ssize_t played = state.shape[0] - <Py_ssize_t>sizeof(PufferGenerator), step
        cdef uint32_t actions[8]
        if played < 0 or played % bytes_of_step:
            raise APIUsageError(f"expected the state of a game, got {state.shape[0]} bytes")
        memcpy(&game.generator, &state[0], sizeof(PufferGenerator))
        box2d_begin(&self.batch, index)
        for step in range(played // bytes_of_step):
            memcpy(actions, &state[<Py_ssize_t>sizeof(PufferGenerator) + step * bytes_of_step], bytes_of_step)
            box2d_step(&self.batch, index, actions)
