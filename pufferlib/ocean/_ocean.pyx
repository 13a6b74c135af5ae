"""Python binding of a batch of C games. All arguments are checked here, before they reach C."""

import os

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_IsContiguous, PyBuffer_Release,
    PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp cimport bool as c_bool

from pufferlib.native._python cimport PyBytes_AS_STRING
from pufferlib.native.puffer_batch cimport (
    PUFFER_BOX, PUFFER_DISABLED, PUFFER_MAX_METRICS, PUFFER_NEXT_STEP, PUFFER_SAME_STEP, PUFFER_TEXT, PufferArea,
    PufferBatch, PufferBounds, PufferCanvas, PufferEnvType, PufferLibrary, PufferLog, PufferSpec, PufferValue,
    puffer_action_count,
    puffer_action_limit, puffer_batch_bind, puffer_batch_create, puffer_batch_destroy, puffer_batch_replace_python,
    puffer_batch_report, puffer_bounds_of, puffer_env_types, puffer_game, puffer_last_info_bytes, puffer_library_fits, puffer_load_game, puffer_num_dims,
    puffer_number_bytes, puffer_restart_game, puffer_row_numbers, puffer_save_game, puffer_seed_game, puffer_set_parameters,
    puffer_state_bytes, puffer_take_actions,
)
from pufferlib.native.puffer_pixels cimport puffer_draw_games, puffer_pixels_create, puffer_pixels_destroy
from pufferlib.native.puffer_pool cimport PUFFER_STOPPED, puffer_helpers, puffer_pool_prepare, puffer_pool_run
from pufferlib.native.puffer_task cimport PUFFER_HELPER_NS, PUFFER_MAX_THREADS, PufferHelpers, PufferTask

import numpy as np

from pufferlib.actions import plain_actions
from pufferlib.errors import APIUsageError, PufferError

cdef extern from *:
    """
    extern const char puffer_source_hash[];
    """
    const char *puffer_source_hash

source_hash = puffer_source_hash.decode()  # hash of all compiled sources, see native/source_hash.py

cdef enum:
    ACTIONS = 2  # indices among the bound arrays
    REWARDS = 3

MAX_THREADS = PUFFER_MAX_THREADS

cdef dict AUTORESETS = {"same_step": PUFFER_SAME_STEP, "next_step": PUFFER_NEXT_STEP, "disabled": PUFFER_DISABLED}


cdef list _bounds(const PufferSpec *spec):
    """Return the lowest and highest value of each number of a row, or a single pair if all have the same bounds."""
    cdef PufferBounds bounds
    cdef size_t i
    found = []
    for i in range(puffer_row_numbers(spec) if spec.observation_bounds is not NULL else 1):
        bounds = puffer_bounds_of(spec, i)
        found.append((bounds.low, bounds.high))
    return found


cdef list _sizes(const int32_t *sizes):
    return [sizes[i] for i in range(puffer_num_dims(sizes))]


cdef list _addresses():
    cdef int i = 0
    found = []
    while puffer_env_types[i] is not NULL:
        found.append(<size_t>puffer_env_types[i])
        i += 1
    return found


cdef list addresses = _addresses()  # of the PufferEnvTypes of this build, then of the added ones
cdef int num_built = len(addresses)


cdef const PufferHelpers *shared_helpers() noexcept:
    return puffer_helpers()


cdef const PufferEnvType *type_at(int index) except NULL:
    return <const PufferEnvType *><size_t>addresses[index]


def ocean_types():
    """Return the declarations of every C environment of this build as dicts, sorted by name."""
    return [_declarations(i) for i in range(num_built)]


def add_type(size_t address):
    """Register the environment of a ``PufferLibrary`` and return its declarations.

    The library at ``address`` must stay loaded for the lifetime of the process.

    Returns:
        A dict like the entries of ``ocean_types``, or None if the library was compiled against different structs.
    """
    cdef const PufferLibrary *library = <const PufferLibrary *>address
    if not puffer_library_fits(library):
        return None
    addresses.append(<size_t>library.type)
    return _declarations(len(addresses) - 1)


cdef dict _declarations(int index):
    cdef const PufferEnvType *kind = type_at(index)
    cdef int j
    return {
        "index": index,
        "name": kind.name.decode(),
        "class_name": kind.class_name.decode(),
        "about": kind.about.decode(),
        "parameters": [
            {
                "name": kind.parameters[j].name.decode(),
                "type": chr(kind.parameters[j].type),
                "default": kind.parameters[j].value,
                "low": kind.parameters[j].low,
                "high": kind.parameters[j].high,
                "about": kind.parameters[j].about.decode(),
            }
            for j in range(kind.num_parameters)
        ],
        "metrics": {kind.metrics[j].name.decode(): kind.metrics[j].about.decode() for j in range(kind.num_metrics)},
        "infos": [
            {
                "name": kind.infos[j].name.decode(),
                "type": chr(kind.infos[j].type),
                "count": kind.infos[j].bytes // puffer_number_bytes(kind.infos[j].type),
                "low": kind.infos[j].low,
                "high": kind.infos[j].high,
            }
            for j in range(kind.num_infos)
        ],
        "keys": [
            {
                "name": kind.keys[j].name.decode(),
                "component": kind.keys[j].component,
                "value": kind.keys[j].value,
                "about": kind.keys[j].about.decode(),
            }
            for j in range(kind.num_keys)
        ],
    }


cdef void _reset_games(void *batch, int32_t begin, int32_t end) noexcept nogil:
    (<PufferBatch *>batch).type.reset(<PufferBatch *>batch, begin, end)
    puffer_draw_games(<PufferBatch *>batch, begin, end)


cdef void _step_games(void *batch, int32_t begin, int32_t end) noexcept nogil:
    puffer_take_actions(<PufferBatch *>batch, begin, end)
    (<PufferBatch *>batch).type.step(<PufferBatch *>batch, begin, end)
    puffer_draw_games(<PufferBatch *>batch, begin, end)


cdef c_bool _is_interrupted(void *owner) noexcept with gil:
    # Run the handlers of pending signals, as the interpreter does between two bytecode instructions.
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        (<OceanBatch>owner).interruption = error
        return True
    return False


cdef int set_values(PufferValue *to, const PufferEnvType *kind, values) except -1:
    """Copy the values of all parameters: a number, or bytes for a text, which must outlive the use of ``to``."""
    cdef int i
    for i, value in enumerate(values):
        if kind.parameters[i].type == PUFFER_TEXT:
            to[i].text = value
        else:
            to[i].number = value
    return 0


cdef str _shown(value):
    """Return the value of a parameter as error messages show it."""
    return repr(value.decode()) if isinstance(value, bytes) else f"{value:g}"


cdef inline bint overlaps(const Py_buffer *one, const Py_buffer *other) noexcept:
    """Return True if two buffers share memory but are not the same buffer."""
    cdef char *first = <char *>one.buf
    cdef char *second = <char *>other.buf
    if first == second and one.len == other.len:
        return False
    return first < second + other.len and second < first + one.len


@cython.final
cdef class OceanBatch:
    """A batch of games of one C environment, and the arrays that they read and write.

    Args:
        index: Index of the environment in ``ocean_types()``, or the index that ``add_type`` returned.
        num_games: Number of games.
        values: Value of each parameter as a float, in the order of the parameter table and within its range.
        log_interval: Number of steps between two reports.
        autoreset: Autoreset mode: "same_step", "next_step" or "disabled".
        num_threads: Maximum number of threads that work on a step.
        helper_ns: Amount of work, in ns, that justifies one more thread. 0 always uses all threads.
        pixels: Height and width of the images that replace the observations, or None for the usual observations.
        infos: Names of the infos that ``last_infos`` returns, for a batch in the place of a Python environment, whose
            flags it then has. None for other batches.
    """

    cdef PufferBatch batch
    cdef PufferTask resetting, stepping
    cdef Py_buffer lent  # the caller's actions of the step, if they are used without a copy
    cdef str where
    cdef tuple pixels, infos
    cdef Py_buffer views[7]
    cdef int num_views
    cdef readonly bint ready  # reset was called
    cdef bint busy  # a thread is stepping, without the GIL
    cdef object interruption  # what a signal raised in a reset or step
    cdef bint interrupted  # the last reset or step was interrupted half-way
    cdef int64_t log_interval
    cdef public int64_t steps  # number of steps since all games were reset

    def __cinit__(self, int index, int32_t num_games, values, int64_t log_interval,
                  str autoreset="same_step", int32_t num_threads=1, int32_t helper_ns=PUFFER_HELPER_NS,
                  tuple pixels=None, tuple infos=None):
        cdef const PufferEnvType *kind
        cdef PufferValue[MAX_PARAMETERS] given
        cdef const char *problem
        if not 0 <= index < len(addresses):
            raise APIUsageError(f"OceanBatch: index must be at least 0 and below {len(addresses)}, got {index}")
        kind = type_at(index)
        if not len(values) == kind.num_parameters <= MAX_PARAMETERS or num_games < 1:
            raise APIUsageError(
                f"OceanBatch: {kind.class_name.decode()} takes {kind.num_parameters} values (at most {MAX_PARAMETERS}) "
                f"and at least 1 game, got {len(values)} and {num_games}"
            )
        set_values(given, kind, values)
        self.where = kind.class_name.decode()
        self.log_interval = log_interval
        problem = puffer_batch_create(&self.batch, kind, num_games, given)
        if problem is not NULL:
            sentence = problem.decode()
            got = [f"{kind.parameters[i].name.decode()}={_shown(values[i])}" for i in range(kind.num_parameters)
                   if kind.parameters[i].name.decode() in sentence.split()]
            raise APIUsageError(f"{self.where}: {sentence}, got {', '.join(got)}" if got else f"{self.where}: {sentence}")
        if self.batch.games is NULL:
            raise MemoryError(f"{self.where}: no memory for {num_games} games")
        if not 1 <= num_threads <= PUFFER_MAX_THREADS or helper_ns < 0:
            raise APIUsageError(
                f"OceanBatch: num_threads must be from 1 to {PUFFER_MAX_THREADS} and helper_ns at least 0, "
                f"got {num_threads} and {helper_ns}"
            )
        self.batch.autoreset = AUTORESETS[autoreset]
        self.infos = infos
        if infos is not None and not puffer_batch_replace_python(&self.batch):
            raise MemoryError(f"{self.where}: no memory for the infos of {num_games} games")
        self.pixels = pixels
        if pixels is not None and not puffer_pixels_create(&self.batch, pixels[0], pixels[1], num_threads):
            raise MemoryError(f"{self.where}: no memory for pictures of {num_games} games")
        self._describe(&self.resetting, _reset_games, num_threads, helper_ns)
        self._describe(&self.stepping, _step_games, num_threads, helper_ns)
        self._check_helpers(puffer_pool_prepare(num_threads))

    cdef void _describe(self, PufferTask *task, void (*work)(void *, int32_t, int32_t) noexcept nogil,
                        int32_t num_threads, int32_t helper_ns) noexcept:
        task.work = work
        task.context = &self.batch
        task.stop = _is_interrupted
        task.owner = <void *>self
        task.num_items = self.batch.num_games
        task.threads = num_threads
        task.helper_ns = helper_ns

    cdef int _check_helpers(self, int error) except -1:
        if error:
            raise PufferError(
                f"{self.where}: num_threads={self.stepping.threads} needs {self.stepping.threads - 1} helper threads, "
                f"and one could not be started ({os.strerror(error)}); choose a smaller num_threads, or raise the "
                "limits of this process or container on threads and memory"
            )
        return 0

    cdef int _run(self, PufferTask *task) except -1:
        cdef int outcome
        with nogil:
            outcome = puffer_pool_run(task)
        if outcome == 0:
            return 0
        self.ready, self.interrupted = False, True
        error, self.interruption = self.interruption, None
        if outcome == PUFFER_STOPPED:
            raise error
        return self._check_helpers(outcome)

    def __dealloc__(self):
        self._release()

    @property
    def spec(self):
        """Spec of one game as a dict. Dtypes are NumPy type characters."""
        cdef PufferSpec *spec = &self.batch.spec
        pictures = self.pixels is not None
        return {
            "observation_type": "B" if pictures else chr(spec.observation_type),
            "observation_shape": (3, *self.pixels) if pictures else tuple(_sizes(spec.observation_shape)),
            "observation_bounds": [(0.0, 255.0)] if pictures else _bounds(spec),
            "action_kind": ("discrete", "multi_discrete", "box")[spec.action_kind],
            "action_sizes": _sizes(spec.action_sizes),
            "action_limit": puffer_action_limit(spec),
            "action_mask": (spec.action_mask.offset, spec.action_mask.size),
            "agents": spec.agents,
            "agents_end": bool(spec.agents_end),
            "game_bytes": self.batch.game_bytes,
            "picture": (spec.picture_height, spec.picture_width),
            "frames_per_second": spec.frames_per_second,
            "max_steps": spec.max_steps,
        }

    def bind(self, observations, final_observations, actions, rewards, terminals, truncations, masks):
        """Use these arrays without copying them. The batch keeps a reference to each until it is closed."""
        cdef PufferBatch *batch = &self.batch
        cdef int64_t agents = <int64_t>batch.num_games * batch.spec.agents
        cdef int64_t row = <int64_t>batch.observation_bytes * batch.num_games
        cdef void *rows
        cdef void *final_rows
        observation_type = chr(batch.spec.observation_type)
        if self.pixels is not None:
            row, observation_type = 3 * agents * <int64_t>self.pixels[0] * <int64_t>self.pixels[1], "B"
        action_type = "f" if batch.spec.action_kind == PUFFER_BOX else "i"
        if self.num_views:
            raise APIUsageError(f"{self.where}: the arrays are bound already")
        try:
            rows = self._bind("observations", observations, observation_type, row)
            final_rows = self._bind("final_observations", final_observations, observation_type, row)
            batch.actions = self._bind(
                "actions", actions, action_type, 4 * agents * puffer_action_count(&batch.spec))
            batch.rewards = self._bind("rewards", rewards, "f", 4 * agents)
            batch.terminals = self._bind("terminals", terminals, "?", agents)
            batch.truncations = self._bind("truncations", truncations, "?", agents)
            batch.masks = self._bind("masks", masks, "?", agents)
        except BaseException:
            self._release_views()
            raise
        if self.pixels is None:
            batch.observations, batch.final_observations = rows, final_rows
        else:
            batch.pixels.rows, batch.pixels.final_rows = <uint8_t *>rows, <uint8_t *>final_rows
        puffer_batch_bind(batch)

    cdef void *_bind(self, str name, array, str kind, int64_t num_bytes) except NULL:
        cdef Py_buffer *view = &self.views[self.num_views]
        try:
            PyObject_GetBuffer(array, view, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_STRIDES)
        except (BufferError, TypeError, ValueError) as error:
            raise APIUsageError(f"{self.where}: {name} must be a writable array, got {array!r:.80} ({error})") from None
        self.num_views += 1
        if view.format.decode() != kind or view.len != num_bytes or not PyBuffer_IsContiguous(view, b"C"):
            raise APIUsageError(
                f"{self.where}: {name} must be C-contiguous with {num_bytes} bytes of type {kind!r}, "
                f"got {view.len} bytes of type {view.format.decode()!r}"
                f"{'' if PyBuffer_IsContiguous(view, b'C') else ', not contiguous'}"
            )
        return view.buf

    cdef int _check(self, str method) except -1:
        if self.batch.games is NULL:
            raise APIUsageError(f"{self.where}.{method}: the environment is closed; make a new one")
        if self.num_views != 7:
            raise APIUsageError(f"{self.where}.{method}: no arrays are bound; call bind first")
        if self.busy:
            raise APIUsageError(f"{self.where}.{method}: another thread is stepping this environment")
        return 0

    cdef _not_ready(self, str method):
        self._check(method)
        why = "the last call was interrupted half-way" if self.interrupted else "no episode has begun"
        return APIUsageError(f"{self.where}.{method}: {why}; call reset first")

    cdef int _seed(self, int32_t index, seed) except -1:
        if seed is not None:
            puffer_seed_game(&self.batch, index, <uint64_t>seed)
        return 0

    def reset(self, seeds=None):
        """Reset all games and their statistics.

        Args:
            seeds: Seed of each game. A game whose seed is None continues its random stream.
        """
        cdef int32_t i
        self._check("reset")
        self.busy = True
        try:
            if seeds is not None:
                for i, seed in zip(range(self.batch.num_games), seeds, strict=True):
                    self._seed(i, seed)
            self._run(&self.resetting)
        finally:
            self.busy = False
        self.interrupted = False
        self.steps = 0
        self.ready = True

    def reset_games(self, indices, seeds):
        """Reset some games, each with a seed or None. Their statistics are kept."""
        cdef PufferLog log
        cdef int32_t i
        if not self.ready or self.batch.games is NULL or self.busy:
            raise self._not_ready("reset")
        for index, seed in zip(indices, seeds, strict=True):
            if not 0 <= index < self.batch.num_games:
                raise APIUsageError(f"{self.where}.reset: games are below {self.batch.num_games}, got {index}")
            i = index
            self._seed(i, seed)
            log = self.batch.logs[i]
            _reset_games(&self.batch, i, i + 1)
            log.is_partial = 0
            self.batch.logs[i] = log

    def step(self, actions):
        """Step every game once. Return True when a report is due."""
        if not self.ready or self.batch.games is NULL or self.busy:
            raise self._not_ready("step")
        self.busy = True  # set first, because reading the actions may run arbitrary Python code
        try:
            if actions is not <object>self.views[ACTIONS].obj:
                self._borrow_actions(actions)
            self._run(&self.stepping)
        finally:
            if self.batch.given is not NULL:
                self.batch.given = NULL
                PyBuffer_Release(&self.lent)
            self.busy = False
        self.steps += 1
        return self.steps % self.log_interval == 0

    cdef int _borrow_actions(self, actions) except -1:
        # A C-contiguous int32 or int64 array of the right shape (float32 for a Box) is used directly. Anything else
        # is converted by NumPy first. Each stepping thread copies its own part.
        if not PyObject_CheckBuffer(actions) or not self._borrow_array(actions):
            rows = &self.views[ACTIONS]
            shape = tuple([rows.shape[i] for i in range(rows.ndim)])
            self._borrow_array(plain_actions(f"{self.where}.step", actions, shape, rows.format[0] == c"f"))
        return 0

    cdef bint _borrow_array(self, array) except -1:
        # Return False if the array has another dtype, shape or memory order than the common cases.
        try:
            PyObject_GetBuffer(array, &self.lent, PyBUF_FORMAT | PyBUF_STRIDES)
        except (BufferError, ValueError):  # numpy has types that a buffer cannot describe
            return False
        if not self._fits(&self.lent):
            PyBuffer_Release(&self.lent)
            return False
        self.batch.is_wide = self.lent.itemsize == 8
        self.batch.given = self.lent.buf
        return True

    cdef bint _fits(self, Py_buffer *view) noexcept:
        cdef Py_buffer *rows = &self.views[ACTIONS]
        cdef char kind = rows.format[0]
        cdef int i
        if view.ndim != rows.ndim or view.format is NULL or view.format[1] != 0:
            return False
        for i in range(rows.ndim):
            if view.shape[i] != rows.shape[i]:
                return False
        if not PyBuffer_IsContiguous(view, b"C") or overlaps(view, rows):
            return False
        return view.format[0] == kind or kind == c"i" and view.itemsize == 8 and view.format[0] in (c"l", c"q")

    @property
    def exact_rewards(self):
        """Rewards of the last step, float32. See ``pufferlib.registry.in_c.Games``."""
        self._check("exact_rewards")
        return <object>self.views[REWARDS].obj

    def last_infos(self, index):
        """Return the infos of the last step of the episode that has just ended: floats, and arrays of several numbers."""
        cdef const PufferEnvType *kind = self.batch.type
        cdef const char *at = self.batch.last_infos
        cdef size_t num_bytes
        cdef int i
        infos = {}
        if at is NULL:
            return infos
        at += <size_t><int32_t>index * puffer_last_info_bytes(kind)
        for i in range(kind.num_last_infos):
            num_bytes = kind.last_infos[i].bytes
            name = kind.last_infos[i].name.decode()
            if name in self.infos:
                values = np.frombuffer(at[:num_bytes], chr(kind.last_infos[i].type))
                kept = np.int64 if values.dtype == np.int32 else values.dtype  # Python's own integers are longer
                infos[name] = float(values[0]) if len(values) == 1 else values.astype(kept)
            at += num_bytes
        return infos

    @property
    def state_bytes(self):
        """Size of the state of one game in bytes."""
        return puffer_state_bytes(&self.batch)

    def save_games(self, indices):
        """Return the concatenated states of some games."""
        cdef size_t each = puffer_state_bytes(&self.batch), place
        cdef int32_t index
        if not self.ready or self.batch.games is NULL or self.busy:
            raise self._not_ready("save_state")
        state = PyBytes_FromStringAndSize(NULL, len(indices) * each)
        for place, index in enumerate(indices):
            puffer_save_game(&self.batch, index, PyBytes_AS_STRING(state) + place * each)
        return state

    def load_games(self, indices, const unsigned char[::1] state):
        """Load saved states into some games. Loading all games makes the batch ready to step without a reset.

        The states must come from the same environment type with the same parameters.
        """
        cdef size_t each = puffer_state_bytes(&self.batch), place
        cdef int32_t index
        self._check("load_state")
        is_all = len(indices) == self.batch.num_games
        if not self.ready and not is_all:
            raise self._not_ready("load_state")
        if state.shape[0] != <Py_ssize_t>(len(indices) * each):
            raise APIUsageError(
                f"{self.where}.load_state: {len(indices)} games have {len(indices) * each} bytes, got {state.shape[0]}")
        for place, index in enumerate(indices):
            puffer_load_game(&self.batch, index, <const char *>&state[place * each])
            puffer_draw_games(&self.batch, index, index + 1)
        if is_all:
            self.ready, self.interrupted = True, False

    def restart_games(self, indices, const unsigned char[::1] state):
        """Start the next episode of each of these games from the saved state of one game of the same type."""
        cdef int32_t index
        self._check("restart_from")
        if not self.ready:
            raise self._not_ready("restart_from")
        if state.shape[0] != <Py_ssize_t>puffer_state_bytes(&self.batch):
            raise APIUsageError(
                f"{self.where}.restart_from: the state must be of one game, {puffer_state_bytes(&self.batch)} bytes, "
                f"got {state.shape[0]}")
        for index in indices:
            puffer_restart_game(&self.batch, index, <const char *>&state[0])
            puffer_draw_games(&self.batch, index, index + 1)

    def set_parameters(self, values):
        """Set the parameters of every game. Parameters that determine the size of a game must not change."""
        cdef PufferValue[MAX_PARAMETERS] given
        cdef int32_t i
        self._check("set_parameters")
        if len(values) != self.batch.type.num_parameters:
            raise APIUsageError(f"{self.where} takes {self.batch.type.num_parameters} values, got {len(values)}")
        set_values(given, self.batch.type, values)
        for i in range(self.batch.num_games):
            puffer_set_parameters(puffer_game(&self.batch, i), self.batch.type, given)

    def report(self):
        """Return a list with the mean metrics of the episodes finished since the last report, or an empty list."""
        cdef double metrics[PUFFER_MAX_METRICS]
        cdef double episode_return, episode_length
        cdef int i
        self._check("report")
        cdef int64_t n = puffer_batch_report(&self.batch, metrics, &episode_return, &episode_length)
        if n == 0:
            return []
        report = {self.batch.type.metrics[i].name.decode(): metrics[i] / n for i in range(self.batch.type.num_metrics)}
        report["episode_return"] = episode_return / n
        report["episode_length"] = episode_length / n
        report["n"] = n
        return [report]

    def render(self, int64_t index, int32_t agent, uint8_t[:, :, ::1] picture):
        """Draw game ``index`` into ``picture``, uint8 ``(height, width, 3)``.

        ``agent`` is the agent that the image is drawn for, or -1 for none.
        """
        cdef PufferCanvas canvas
        self._check("render")
        if not self.ready:
            raise self._not_ready("render")
        if not 0 <= index < self.batch.num_games:
            raise APIUsageError(
                f"{self.where}.render: env_index must be at least 0 and below {self.batch.num_games}, got {index}")
        canvas.agent = agent
        canvas.width = self.batch.spec.picture_width
        canvas.height = self.batch.spec.picture_height
        if picture.shape[0] != canvas.height or picture.shape[1] != canvas.width or picture.shape[2] != 3:
            raise APIUsageError(f"{self.where}.render: the picture must have shape ({canvas.height}, {canvas.width}, 3)")
        canvas.pixels = &picture[0, 0, 0]
        self.batch.type.draw(puffer_game(&self.batch, <int32_t>index), &canvas)

    def picture(self, index):
        """Return an image of game ``index``, uint8 ``(height, width, 3)``."""
        picture = np.zeros((self.batch.spec.picture_height, self.batch.spec.picture_width, 3), np.uint8)
        self.render(index, -1, picture)
        return picture

    def areas(self, int64_t index, int32_t agent):
        """Return the clickable areas in an agent's image of game ``index``.

        The result is a dict from action to (x, y, width, height).
        """
        cdef PufferArea area
        cdef int32_t action
        self._check("areas")
        found = {}
        if self.batch.type.area is NULL or not self.ready or not 0 <= index < self.batch.num_games:
            return found
        for action in range(self.batch.spec.action_sizes[0]):
            if self.batch.type.area(puffer_game(&self.batch, <int32_t>index), agent, action, &area):
                found[action] = (area.x, area.y, area.width, area.height)
        return found

    def close(self):
        """Free the games and release the arrays. Closing twice is safe."""
        if self.busy:
            raise APIUsageError(f"{self.where}.close: another thread is stepping this environment")
        self._release()

    cdef void _release(self) noexcept:
        puffer_pixels_destroy(&self.batch)
        puffer_batch_destroy(&self.batch)
        self._release_views()

    cdef void _release_views(self) noexcept:
        cdef int i
        for i in range(self.num_views):
            PyBuffer_Release(&self.views[i])
        self.num_views = 0
