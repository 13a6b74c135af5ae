"""``NativePool``: games of one C environment as a pool. All arguments are checked here, before they reach C."""

import os
from time import sleep

import numpy as np

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset
from libcpp cimport bool as c_bool

from pufferlib.envpool._fresh_arrays cimport FreshArrays
from pufferlib.native._arrays cimport ALIGNED_AND_CONTIGUOUS, ArrayHead, head_of, is_native
from pufferlib.native.puffer_batch cimport (
    PUFFER_BOX, PUFFER_DISABLED, PUFFER_NEXT_STEP, PUFFER_SAME_STEP, PufferAutoreset, PufferBatch, PufferCanvas,
    PufferEnvType, PufferInfo, PufferSpec, PufferValue, puffer_action_count, puffer_batch_create, puffer_game, puffer_num_dims, puffer_number_bytes,
    puffer_seed_game,
)
from pufferlib.native.puffer_task cimport PUFFER_HELPER_NS, PufferHelpers, PufferTask
from pufferlib.ocean._ocean cimport MAX_PARAMETERS, set_values, shared_helpers, type_at

from pufferlib.envpool.pool_env import read_dict
from pufferlib.envpool.pool import PoolBatch
from pufferlib.envpool.refusals import converted_actions, converted_ids, refused_action, refused_id
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.native._pictures import scale_picture
from pufferlib.seeding import env_seed

cdef enum:  # uses of a pool. Two threads may take turns in the first two
    SENDS = 1
    RECEIVES = 2
    ALONE = 4

TURN_S = 20e-6  # between checks whether it is this thread's turn

cdef extern from "puffer_queue.h" nogil:
    ctypedef struct PufferQueue:
        pass
    void puffer_queue_push(PufferQueue *queue, const int32_t *things, int32_t count)

cdef extern from "puffer_envpool.h" nogil:
    enum:
        PUFFER_OBSERVATION
        PUFFER_REWARD
        PUFFER_GAME_TERMINATED
        PUFFER_GAME_TRUNCATED
        PUFFER_ENV_ID
        PUFFER_PLAYER_ENV_ID
        PUFFER_ELAPSED_STEP
        PUFFER_FINAL_OBSERVATION
        PUFFER_FINAL_ELAPSED_STEP
        PUFFER_PLAYER_TERMINATED
        PUFFER_PLAYER_TRUNCATED
        PUFFER_PLAYER_MASK
        PUFFER_COLUMNS
        PUFFER_MAX_COLUMNS
        PUFFER_MAX_FIELDS
        PUFFER_IDLE
        PUFFER_SENT
        PUFFER_READY
    ctypedef struct PufferColumn:
        char *home
        char *batch
        size_t bytes
        size_t stride
    ctypedef struct PufferEnvPool:
        PufferBatch batch
        PufferQueue queue
        PufferColumn *columns
        int32_t num_columns
        PufferAutoreset autoreset
        int32_t max_steps
        int32_t *elapsed
        int32_t *final_elapsed
        c_bool *terminated
        c_bool *truncated
        uint8_t *stage
        int32_t num_ready, num_in_flight
        c_bool is_held, begins
        PufferTask task
        const PufferHelpers *helpers
    double puffer_expected_ns(const PufferEnvPool *pool)
    void puffer_call_helpers(PufferEnvPool *pool)
    c_bool puffer_await(PufferEnvPool *pool, int32_t wanted)
    void puffer_copy_rows(const PufferEnvPool *pool, int32_t begin, int32_t end, int32_t row)
    void puffer_gather(const PufferEnvPool *pool, const int32_t *games, int32_t count)
    void puffer_take_ready(PufferEnvPool *pool, int32_t *games, int32_t count)
    void puffer_release_held(PufferEnvPool *pool)
    void puffer_ask_reset(PufferEnvPool *pool, int32_t index)
    c_bool puffer_is_over(const PufferEnvPool *pool, int32_t index)
    c_bool puffer_has_begun(const PufferEnvPool *pool, int32_t index)
    int32_t puffer_run_end(const int32_t *games, int32_t start, int32_t count, int32_t most)
    c_bool puffer_copy_actions(const PufferSpec *spec, void *to, const void *given, char letter, int64_t count)
    c_bool puffer_envpool_allocate(PufferEnvPool *pool)
    int puffer_envpool_open(PufferEnvPool *pool, const PufferHelpers *helpers, int32_t threads, int32_t helper_ns,
                            int32_t affinity)
    PufferEnvPool *puffer_envpool_new()
    void puffer_envpool_free(PufferEnvPool *pool)

cdef double DIRECT_NS = 5e7  # longest step of all games during which Ctrl-C may wait
cdef double QUICK_NS = 5e3   # shorter steps keep the interpreter's lock
cdef double EARLY_NS = 1e5   # longer steps start in send

cdef dict AUTORESETS = {"same_step": PUFFER_SAME_STEP, "next_step": PUFFER_NEXT_STEP, "disabled": PUFFER_DISABLED}
cdef object ndarray = np.ndarray
cdef object empty = np.empty
cdef object tuple_new = tuple.__new__


@cython.final
cdef class NativePool:
    """``Pool`` of games of one C environment. See ``pufferlib.envpool.pool``.

    Args:
        index: Index of the environment in ``ocean_types()``, or the result of ``add_type``.
        values: A float, or bytes for a text, for each parameter, in the order and range of its table.
        spec: Spec of the pool.
        seeds: An int for each environment, which plays as ``pufferlib.make(name, seed=seed)`` does.
        batch_size: Number of environments per batch. The pool is synchronous if it equals the number of seeds.
        num_threads: Maximum number of threads that step games, including the caller's.
        max_episode_steps: Steps after which an episode is truncated, or 0 for no limit.
        autoreset: What follows the end of an episode: "next_step", "same_step" or "disabled".
        copy: Whether batches are new arrays. If not, they are the arrays of the pool.
        thread_affinity_offset: Core of the caller. The helpers use the cores after it. -1 for any.
        fields: Structured dtype of observations, which batches show as a dict, or None if they have no fields.
        helper_ns: Work in ns that justifies one more thread. 0 always uses all threads.
    """

    cdef PufferEnvPool *pool
    cdef readonly object spec
    cdef readonly int32_t num_envs, batch_size
    cdef str where
    cdef bint copies, is_sync, is_single, is_busy
    cdef int use  # of the current call, or else of the last one
    cdef unsigned long user  # thread of that call
    cdef int32_t agents
    cdef bint is_all  # of a synchronous pool: all environments are in flight, in their order
    cdef bytearray ids_memory, order_memory
    cdef int32_t *ids    # of a call, or of the batch
    cdef int32_t *order  # of the environments in flight
    cdef int num_action_dims
    cdef Py_ssize_t action_width
    cdef tuple field_names  # of a Dict observation
    cdef int fields  # column of the first field. The others and the fields of finished episodes follow
    cdef list homes, fresh, bound
    cdef list info_names  # of the environment's own infos, whose columns start at PUFFER_COLUMNS
    cdef PyObject *given[PUFFER_MAX_COLUMNS]  # arrays of the batch, by column
    cdef tuple same_tuple        # what step returns while the arrays stay the same
    cdef size_t same_key

    def __cinit__(self, int index, values, spec, seeds, int32_t batch_size, int32_t num_threads=1,
                  int32_t max_episode_steps=0, str autoreset="next_step", bint copy=True,
                  int32_t thread_affinity_offset=-1, int32_t helper_ns=PUFFER_HELPER_NS, fields=None):
        cdef const PufferEnvType *kind = type_at(index)
        cdef PufferValue[MAX_PARAMETERS] given
        cdef const char *problem
        cdef int i
        self.num_envs, self.batch_size, self.spec, self.copies = len(seeds), batch_size, spec, copy
        self.is_sync, self.field_names = self.num_envs == batch_size, tuple(fields.names) if fields else ()
        self.where = kind.class_name.decode()
        if not len(values) == kind.num_parameters <= MAX_PARAMETERS or not 1 <= batch_size <= self.num_envs:
            raise APIUsageError(
                f"NativePool: {self.where} takes {kind.num_parameters} values (at most {MAX_PARAMETERS}), and a batch "
                f"has from 1 to {self.num_envs} environments, got {len(values)} and {batch_size}")
        set_values(given, kind, values)
        self.pool = puffer_envpool_new()
        if self.pool is NULL:
            raise MemoryError(f"{self.where}: no memory for a pool")
        problem = puffer_batch_create(&self.pool.batch, kind, self.num_envs, given)
        if problem is not NULL:
            raise APIUsageError(f"{self.where}: {problem.decode()}")
        if self.pool.batch.games is NULL or not puffer_envpool_allocate(self.pool):
            raise MemoryError(f"{self.where}: no memory for {self.num_envs} games")
        self.pool.autoreset, self.pool.max_steps = AUTORESETS[autoreset], max_episode_steps
        self.pool.batch.joins_flags = True
        self._lay_out(fields)
        self._open(num_threads, helper_ns, thread_affinity_offset)
        for i, seed in enumerate(seeds):
            puffer_seed_game(&self.pool.batch, i, <uint64_t>env_seed(seed, 0))

    cdef int _open(self, int32_t num_threads, int32_t helper_ns, int32_t affinity) except -1:
        cdef int error = puffer_envpool_open(self.pool, shared_helpers(), num_threads, helper_ns, affinity + 1)
        if error:
            raise PufferError(
                f"{self.where}: num_threads={num_threads} needs {num_threads - 1} helper threads, and one could not be "
                f"started ({os.strerror(error)}); choose a smaller num_threads, or raise the limits of this process or "
                "container on threads and memory")
        return 0

    cdef int _lay_out(self, fields) except -1:
        """Allocate the arrays of the games and of batches."""
        cdef PufferBatch *batch = &self.pool.batch
        cdef int agents = batch.spec.agents
        cdef int32_t envs = self.num_envs
        cdef int i, count, num_infos = batch.type.num_infos
        cdef const PufferInfo *info
        ids = np.arange(envs, dtype=np.int32)
        # A Discrete observation is an array of shape (1,) in C.
        shape = () if self.spec.observation_space.shape == () else _sizes(batch.spec.observation_shape)
        observations = np.zeros((envs * agents, *shape), chr(batch.spec.observation_type))
        self.agents, self.is_single = agents, agents == 1
        self.pool.num_columns = PUFFER_COLUMNS + num_infos * (2 if self.pool.autoreset == PUFFER_SAME_STEP else 1)
        self.homes, self.fresh, self.bound = ([None] * PUFFER_MAX_COLUMNS for _ in range(3))
        self.info_names = [batch.type.infos[i].name.decode() for i in range(num_infos)]
        self._add(PUFFER_OBSERVATION, observations)
        self._add(PUFFER_REWARD, np.zeros(envs * agents, np.float32))
        self._add(PUFFER_GAME_TERMINATED, np.zeros(envs, np.bool_))
        self._add(PUFFER_GAME_TRUNCATED, np.zeros(envs, np.bool_))
        self._add(PUFFER_ENV_ID, ids)
        self._add(PUFFER_PLAYER_ENV_ID, np.repeat(ids, agents))
        self._add(PUFFER_ELAPSED_STEP, np.zeros(envs, np.int32))
        if self.pool.autoreset == PUFFER_SAME_STEP or batch.spec.agents_end:
            self._add(PUFFER_FINAL_OBSERVATION, np.zeros_like(observations))
        for column in (PUFFER_PLAYER_TERMINATED, PUFFER_PLAYER_TRUNCATED, PUFFER_PLAYER_MASK):
            self._add(column, np.ones(envs * agents, np.bool_))
        if self.pool.autoreset == PUFFER_SAME_STEP:
            self._add(PUFFER_FINAL_ELAPSED_STEP, np.zeros(envs, np.int32))
        self._connect()
        if self.pool.autoreset != PUFFER_SAME_STEP:
            self.fresh[PUFFER_FINAL_OBSERVATION] = None
        if self.is_single:
            self.fresh[PUFFER_PLAYER_TERMINATED:PUFFER_COLUMNS] = [None] * (PUFFER_COLUMNS - PUFFER_PLAYER_TERMINATED)
        for i in range(self.pool.num_columns - PUFFER_COLUMNS):
            info = &batch.type.infos[i % num_infos]
            count = info.bytes // puffer_number_bytes(info.type)
            self._add(PUFFER_COLUMNS + i, np.zeros([envs, count][: 1 + (count > 1)], chr(info.type)))
        self._add_fields(fields)
        self.ids_memory, self.order_memory = bytearray(4 * envs), bytearray(4 * envs)
        self.ids, self.order = <int32_t *><char *>self.ids_memory, <int32_t *><char *>self.order_memory
        self.action_width = puffer_action_count(&batch.spec)
        self.num_action_dims = len(self.spec.action_space.shape) + 1
        return 0

    cdef int _add(self, int column, home) except -1:
        cdef PufferColumn *place = &self.pool.columns[column]
        self.homes[column] = home
        self.fresh[column] = FreshArrays(home.shape[1:], home.dtype)
        place.home = head_of(home).data
        place.bytes = home.nbytes // self.num_envs
        place.stride = home.strides[0] * len(home) // self.num_envs
        return 0

    cdef int _add_fields(self, dtype) except -1:
        """Let batches have each field of the observations in an array of its own, instead of whole rows."""
        cdef int column
        self.fields = self.pool.num_columns
        if dtype is None:
            return 0
        if not self.is_single or len(dtype.names) > PUFFER_MAX_FIELDS:
            raise APIUsageError(
                f"NativePool: a Dict observation must have at most {PUFFER_MAX_FIELDS} fields, and one player, got "
                f"{dtype.names} and {self.agents} players in {self.where}")
        for column in (PUFFER_OBSERVATION, PUFFER_FINAL_OBSERVATION):
            if self.fresh[column] is None:
                continue
            self.fresh[column] = None
            records = self.homes[column].view(dtype)[:, 0]
            for name in dtype.names:
                self._add(self.pool.num_columns, records[name])
                self.pool.num_columns += 1
        return 0

    cdef int _connect(self) except -1:
        """Set the arrays of the batch. With one player, its flags are the flags of the game."""
        cdef PufferBatch *batch = &self.pool.batch
        cdef PufferColumn *columns = self.pool.columns
        batch.observations = columns[PUFFER_OBSERVATION].home
        batch.final_observations = columns[PUFFER_FINAL_OBSERVATION].home
        batch.rewards = <void *>columns[PUFFER_REWARD].home
        batch.masks = <void *>columns[PUFFER_PLAYER_MASK].home
        self.pool.terminated = <c_bool *>columns[PUFFER_GAME_TERMINATED].home
        self.pool.truncated = <c_bool *>columns[PUFFER_GAME_TRUNCATED].home
        self.pool.elapsed = <int32_t *>columns[PUFFER_ELAPSED_STEP].home
        self.pool.final_elapsed = <int32_t *>columns[PUFFER_FINAL_ELAPSED_STEP].home
        batch.terminals = <void *>columns[PUFFER_GAME_TERMINATED if self.is_single else PUFFER_PLAYER_TERMINATED].home
        batch.truncations = <void *>columns[PUFFER_GAME_TRUNCATED if self.is_single else PUFFER_PLAYER_TRUNCATED].home
        memset(batch.terminals, 0, batch.spec.agents * self.num_envs)
        memset(batch.truncations, 0, batch.spec.agents * self.num_envs)
        return 0

    def __dealloc__(self):
        puffer_envpool_free(self.pool)

    @property
    def num_in_flight(self):
        """Number of environments that were sent a command and have not been received."""
        return 0 if self.pool is NULL else self.pool.num_in_flight

    # ---- Sending

    cdef inline int _enter(self, str method, int use) except -1:
        if self.pool is NULL or self.is_busy:
            self._take_turn(method, use)
        self.is_busy = True
        self.use, self.user = use, PyThread_get_thread_ident()
        return 0

    cdef int _take_turn(self, str method, int use) except -1:
        """Wait if another thread receives while this one sends, or the reverse. Refuse any other concurrent call."""
        while self.pool is not NULL and self.is_busy:
            if self.use + use != SENDS + RECEIVES or self.user == PyThread_get_thread_ident():
                raise self._closed_or_busy(method)
            sleep(TURN_S)
        if self.pool is NULL:
            raise self._closed_or_busy(method)
        return 0

    cdef _closed_or_busy(self, str method):
        if self.pool is NULL:
            return APIUsageError(f"{self.where}.{method}: the pool is closed; make a new one")
        return APIUsageError(
            f"{self.where}.{method}: another thread, or what it has called, is using this pool; let one thread use it at "
            "a time, or one send and one receive, or make a pool for each")

    cdef int32_t _mark(self, str method, env_ids, bint is_reset) except -1:
        """Mark these environments as in flight. Return their number."""
        cdef ArrayHead *head
        cdef int32_t i, count
        if env_ids is None:
            return self._mark_all(method, is_reset)
        if type(env_ids) is not ndarray or not _is_plain(head_of(env_ids), b"i", 1) or head_of(env_ids).shape[0] == 0:
            return self._mark_wide(method, converted_ids(f"{self.where}.{method}", env_ids), is_reset)
        head = head_of(env_ids)
        count = <int32_t>head.shape[0]
        for i in range(count):
            if not self._mark_one((<int32_t *>head.data)[i], i, is_reset):
                self._unmark(i)
                raise self._refused(method, env_ids, i)
        return count

    cdef int32_t _mark_wide(self, str method, env_ids, bint is_reset) except -1:
        cdef ArrayHead *head = head_of(env_ids)
        cdef Py_ssize_t i
        for i in range(head.shape[0]):
            if not self._mark_one((<int64_t *>head.data)[i], <int32_t>i, is_reset):
                self._unmark(<int32_t>i)
                raise self._refused(method, env_ids, i)
        return <int32_t>head.shape[0]

    cdef inline bint _mark_one(self, int64_t env_id, int32_t i, bint is_reset) noexcept:
        if not 0 <= env_id < self.num_envs or self.pool.stage[env_id] != PUFFER_IDLE:
            return False
        if not is_reset and self.pool.autoreset == PUFFER_DISABLED and puffer_is_over(self.pool, <int32_t>env_id):
            return False
        self.pool.stage[env_id] = PUFFER_SENT
        self.ids[i] = <int32_t>env_id
        return True

    cdef int32_t _mark_all(self, str method, bint is_reset) except -1:
        cdef int32_t i
        if self.pool.num_in_flight:
            raise APIUsageError(
                f"{self.where}.{method}: without env_id it is for all {self.num_envs} environments, but "
                f"{self.pool.num_in_flight} of them are in flight; name those that have come back, "
                "or recv the others first")
        if not is_reset and self.pool.autoreset == PUFFER_DISABLED:
            for i in range(self.num_envs):
                if puffer_is_over(self.pool, i):
                    raise refused_id(f"{self.where}.{method}", i, self.num_envs, PUFFER_IDLE, False)
        memset(self.pool.stage, PUFFER_SENT, self.num_envs)
        return self.num_envs

    cdef _refused(self, str method, env_ids, Py_ssize_t i):
        env_id = int(env_ids[i])
        stage = self.pool.stage[env_id] if 0 <= env_id < self.num_envs else 0
        return refused_id(f"{self.where}.{method}", env_id, self.num_envs, stage, env_id in env_ids[:i])

    cdef void _unmark(self, int32_t count) noexcept:
        cdef int32_t i
        for i in range(count):
            self.pool.stage[self.ids[i]] = PUFFER_IDLE

    cdef int _send(self, str method, actions, env_ids, bint receives) except -1:
        cdef bint is_all = env_ids is None
        cdef int32_t count = self._mark(method, env_ids, False)
        try:
            if receives:
                self._due(method, count)
            self._take_actions(method, actions, count, is_all)
        except BaseException:
            if is_all:
                memset(self.pool.stage, PUFFER_IDLE, self.num_envs)
            else:
                self._unmark(count)
            raise
        self.pool.begins = False
        self._push(count, is_all, receives)
        return 0

    cdef int _take_actions(self, str method, actions, int32_t count, bint is_all) except -1:
        cdef PufferSpec *spec = &self.pool.batch.spec
        cdef size_t row = 4 * self.action_width * spec.agents
        cdef int64_t numbers = self.action_width * spec.agents
        cdef int32_t begin = 0, end
        cdef bint fits = True
        array = self._plain_actions(method, actions, <int64_t>count * spec.agents)
        cdef ArrayHead *head = head_of(array)
        cdef char *to = <char *>self.pool.batch.actions
        cdef char letter = b"l" if head.dtype.type == b"q" else head.dtype.type
        if is_all:
            fits = puffer_copy_actions(spec, to, head.data, letter, count * numbers)
        while not is_all and begin < count:
            end = puffer_run_end(self.ids, begin, count, count)
            fits &= puffer_copy_actions(spec, to + self.ids[begin] * row, head.data + begin * numbers * _width(letter),
                                        letter, (end - begin) * numbers)
            begin = end
        if not fits:
            raise refused_action(f"{self.where}.{method}", actions, _sizes(spec.action_sizes),
                                 spec.action_kind == PUFFER_BOX)
        return 0

    cdef _plain_actions(self, str method, actions, int64_t rows):
        # C-contiguous arrays of int32, int64, float32 and float64 are common. numpy converts all others first.
        cdef ArrayHead *head
        cdef bint is_box = self.pool.batch.spec.action_kind == PUFFER_BOX
        if type(actions) is ndarray:
            head = head_of(actions)
            if _is_plain(head, b"f", self.num_action_dims) or _is_plain(head, b"d", self.num_action_dims) or not is_box and (
                    _is_plain(head, b"i", self.num_action_dims) or _is_plain(head, b"l", self.num_action_dims)):
                if head.shape[0] == rows and (self.num_action_dims == 1 or head.shape[1] == self.action_width):
                    return actions
        return converted_actions(f"{self.where}.{method}", actions, (rows, *self.spec.action_space.shape), is_box)

    cdef void _push(self, int32_t count, bint is_all, bint receives) noexcept:
        """Start the games that have actions or commands. A step of all games may wait for the recv that follows."""
        cdef PufferEnvPool *pool = self.pool
        cdef bint is_near
        cdef int32_t i
        self.is_all = is_all
        if self.is_sync and not is_all:
            for i in range(count):
                self.order[pool.num_in_flight + i] = self.ids[i]
        pool.num_in_flight += count
        if is_all:
            pool.is_held = True
            is_near = receives or pool.task.threads == 1 or puffer_expected_ns(pool) * self.num_envs < EARLY_NS
            if self.is_sync and is_near:
                return
            puffer_release_held(pool)
        else:
            puffer_queue_push(&pool.queue, self.ids, count)
        puffer_call_helpers(pool)

    def send(self, actions, env_ids=None):
        """Send actions to these environments, or to all.

        Args:
            actions: Array or list ``(len(env_ids) * num_players, *action_shape)`` of any dtype, or
                ``{"action": ..., "env_id": ...}``. They may be changed as soon as this returns.
            env_ids: Integers, or None for all.
        """
        self._enter("send", SENDS)
        try:
            if isinstance(actions, dict):
                actions, env_ids = read_dict(f"{self.where}.send", actions, env_ids, self.spec.num_players)
            self._send("send", actions, env_ids, False)
        finally:
            self.is_busy = False

    def reset(self, env_ids=None):
        """Send a reset to these environments, or to all."""
        cdef int32_t i, count
        self._enter("reset", SENDS)
        try:
            count = self._mark("reset", env_ids, True)
            for i in range(count):
                puffer_ask_reset(self.pool, i if env_ids is None else self.ids[i])
            self.pool.begins = True
            self._push(count, env_ids is None, False)
        finally:
            self.is_busy = False

    def reset_with(self, seeds):
        """Reset all environments, each with its own seed from 0 to 2**32 - 1, as in a new pool with these seeds."""
        cdef int32_t i
        self._enter("reset", SENDS)
        try:
            if len(seeds) != self.num_envs:
                raise APIUsageError(f"{self.where}.reset: there must be {self.num_envs} seeds, one for each "
                                    f"environment, got {len(seeds)}")
            mixed = [env_seed(seed, 0) for seed in seeds]
            self._mark_all("reset", True)
            for i in range(self.num_envs):
                puffer_seed_game(&self.pool.batch, i, <uint64_t>mixed[i])
                puffer_ask_reset(self.pool, i)
            self.pool.begins = True
            self._push(self.num_envs, True, False)
        finally:
            self.is_busy = False

    # ---- Receiving

    cdef int32_t _due(self, str method, int32_t more) except -1:
        """Return the number of environments in the next batch, if ``more`` are sent a command before."""
        cdef int32_t in_flight = self.pool.num_in_flight + more
        if in_flight < (1 if self.is_sync else self.batch_size):
            raise APIUsageError(
                f"{self.where}.{method}: it would wait for ever: a batch needs {1 if self.is_sync else self.batch_size} "
                f"environments in flight, got {in_flight}; send some actions first, or reset")
        return in_flight if self.is_sync else self.batch_size

    cdef int _aim(self, int32_t count, bint is_all) except -1:
        """Choose the arrays of the batch."""
        cdef PufferColumn *columns = self.pool.columns
        cdef int i
        for i in range(self.pool.num_columns):
            if self.fresh[i] is None:
                continue
            if self.copies:
                self.given[i] = (<FreshArrays>self.fresh[i]).take(count * self._rows(i))
            elif is_all:
                self.given[i], columns[i].batch = <PyObject *>self.homes[i], NULL
                continue
            else:
                self.given[i] = self._bound_array(i, count * self._rows(i))
            columns[i].batch = (<ArrayHead *>self.given[i]).data
        return 0

    cdef inline int32_t _rows(self, int column) noexcept:
        """Return the number of rows of one environment."""
        if PUFFER_GAME_TERMINATED <= column <= PUFFER_ENV_ID or column >= PUFFER_COLUMNS:
            return 1
        return 1 if column in (PUFFER_ELAPSED_STEP, PUFFER_FINAL_ELAPSED_STEP) else self.agents

    cdef PyObject *_bound_array(self, int column, Py_ssize_t rows) except NULL:
        """Return an array for batches of this number of rows: the last one, or a new one."""
        if self.bound[column] is None or len(self.bound[column]) != rows:
            home = self.homes[column]
            self.bound[column] = empty((rows, *home.shape[1:]), home.dtype)
        return <PyObject *>self.bound[column]

    cdef int32_t _receive(self, int32_t count) except -1:
        """Fill the arrays of a batch with ``count`` environments, as soon as they have finished."""
        cdef PufferEnvPool *pool = self.pool
        cdef bint is_all = self.is_sync and self.is_all
        self._aim(count, is_all)
        if pool.is_held and not pool.begins and 0 < pool.task.item_ns * self.num_envs < DIRECT_NS:
            return self._step_all(count)
        self._wait(count)
        puffer_take_ready(pool, self.ids, count)
        if is_all and self.copies:
            puffer_copy_rows(pool, 0, count, 0)
        elif not is_all:
            puffer_gather(pool, self.order if self.is_sync else self.ids, count)
        return count

    cdef int32_t _step_all(self, int32_t count) except -1:
        cdef PufferEnvPool *pool = self.pool
        cdef int error
        if pool.task.item_ns * count < QUICK_NS:
            error = pool.helpers.run(&pool.task)
        else:
            with nogil:
                error = pool.helpers.run(&pool.task)
        if error:
            pool.task.threads = 1  # from now on
            raise PufferError(f"{self.where}: no helper thread could be started ({os.strerror(error)}); raise the limits "
                              "of this process or container on threads and memory")
        pool.is_held = False
        pool.num_in_flight = 0
        memset(pool.stage, PUFFER_IDLE, count)
        return count

    cdef int _wait(self, int32_t count) except -1:
        cdef c_bool is_ready
        while True:
            if self.pool.task.threads == 1 and 0 < puffer_expected_ns(self.pool) * count < QUICK_NS:
                is_ready = puffer_await(self.pool, count)
            else:
                with nogil:
                    is_ready = puffer_await(self.pool, count)
            if is_ready:
                return 0
            PyErr_CheckSignals()

    def recv(self):
        """Wait for a batch and return it as a ``PoolBatch``."""
        self._enter("recv", RECEIVES)
        try:
            self._receive(self._due("recv", 0))
            return self._batch()
        finally:
            self.is_busy = False

    def recv_step(self):
        """Wait for a batch and return it as ``step`` does."""
        self._enter("recv", RECEIVES)
        try:
            self._receive(self._due("recv", 0))
            return self._step_tuple()
        finally:
            self.is_busy = False

    def step(self, action, env_id=None):
        """Send actions and receive a batch, as in Gymnasium.

        Args:
            action: Actions, as in ``send``.
            env_id: Integers, or None for all.

        Returns:
            Observations, rewards, terminated, truncated and ``{"env_id", "players": {"env_id"}, "elapsed_step"}``.
            "players" also has the infos of players. With autoreset "same_step" there are also "final_obs" and
            "final_info", and "_final_obs" and "_final_info" show which environments have one.
        """
        self._enter("step", ALONE)
        try:
            if isinstance(action, dict):
                action, env_id = read_dict(f"{self.where}.step", action, env_id, self.agents)
            self._send("step", action, env_id, True)
            self._receive(self._due("step", 0))
            return self._step_tuple()
        finally:
            self.is_busy = False

    cdef object _at(self, int column):
        return <object>self.given[column]

    cdef object _observations(self, int column):
        cdef int i
        if not self.field_names:
            return self._at(column)
        first = self.fields + (len(self.field_names) if column == PUFFER_FINAL_OBSERVATION else 0)
        return {name: self._at(first + i) for i, name in enumerate(self.field_names)}

    cdef _batch(self):
        infos = {} if self.is_single else {
            "players.terminated": self._at(PUFFER_PLAYER_TERMINATED),
            "players.truncated": self._at(PUFFER_PLAYER_TRUNCATED),
            "players.mask": self._at(PUFFER_PLAYER_MASK),
        }
        self._add_infos(infos)
        ended = self._at(PUFFER_GAME_TERMINATED) | self._at(PUFFER_GAME_TRUNCATED) if self._has_final() else None
        return tuple_new(PoolBatch, (
            self._at(PUFFER_ENV_ID), self._at(PUFFER_PLAYER_ENV_ID), self._observations(PUFFER_OBSERVATION),
            self._at(PUFFER_REWARD), self._at(PUFFER_GAME_TERMINATED), self._at(PUFFER_GAME_TRUNCATED),
            self._at(PUFFER_ELAPSED_STEP), infos,
            self._observations(PUFFER_FINAL_OBSERVATION) if self._has_final() else None,
            self._final_info(ended) if self._has_final() else None,
        ))

    cdef inline bint _has_final(self):
        return self.pool.autoreset == PUFFER_SAME_STEP

    cdef inline dict _final_info(self, ended):
        cdef int i
        info = {"elapsed_step": self._at(PUFFER_FINAL_ELAPSED_STEP), "_elapsed_step": ended}
        for i, name in enumerate(self.info_names):
            info[name], info[f"_{name}"] = self._at(PUFFER_COLUMNS + len(self.info_names) + i), ended
        return info

    cdef inline int _add_infos(self, dict infos) except -1:
        cdef int i
        for i, name in enumerate(self.info_names):
            infos[name] = self._at(PUFFER_COLUMNS + i)
        return 0

    cdef tuple _step_tuple(self):
        if self.copies:
            return self._new_step_tuple()
        # With arrays that stay the same, so does the result.
        key = <size_t>self.given[self.fields if self.field_names else PUFFER_OBSERVATION]
        if self.same_key != key or self.same_tuple is None:
            self.same_tuple, self.same_key = self._new_step_tuple(), key
        elif self._has_final():
            np.logical_or(self.same_tuple[2], self.same_tuple[3], out=self.same_tuple[4]["_final_obs"])
        return self.same_tuple

    cdef tuple _new_step_tuple(self):
        players = {"env_id": self._at(PUFFER_PLAYER_ENV_ID)}
        info = {"env_id": self._at(PUFFER_ENV_ID), "players": players, "elapsed_step": self._at(PUFFER_ELAPSED_STEP)}
        if not self.is_single:
            players["terminated"] = self._at(PUFFER_PLAYER_TERMINATED)
            players["truncated"] = self._at(PUFFER_PLAYER_TRUNCATED)
            players["mask"] = self._at(PUFFER_PLAYER_MASK)
        self._add_infos(info)
        terminated, truncated = self._at(PUFFER_GAME_TERMINATED), self._at(PUFFER_GAME_TRUNCATED)
        if self._has_final():
            ended = terminated | truncated
            info["final_obs"], info["_final_obs"] = self._observations(PUFFER_FINAL_OBSERVATION), ended
            info["final_info"], info["_final_info"] = self._final_info(ended), ended
        return self._observations(PUFFER_OBSERVATION), self._at(PUFFER_REWARD), terminated, truncated, info

    # ---- The rest

    def observations(self):
        """Return the last observations of all environments in a new array. None may be in flight."""
        self._enter("reset", ALONE)
        try:
            if not self.field_names:
                return self.homes[PUFFER_OBSERVATION].copy()
            return {name: self.homes[self.fields + i].copy() for i, name in enumerate(self.field_names)}
        finally:
            self.is_busy = False

    def render(self, env_ids, int32_t camera_id=-1):
        """Draw these environments as ``(len(env_ids), height, width, 3)``. Wait for environments in flight.

        Args:
            env_ids: Integers.
            camera_id: Player whose view is drawn, or -1 for a view of no particular player.
        """
        self._enter("render", ALONE)
        try:
            ids = converted_ids(f"{self.where}.render", env_ids)
            if not -1 <= camera_id < self.agents:
                raise APIUsageError(
                    f"{self.where}.render: camera_id must be a player from 0 to {self.agents - 1}, or -1 for none in "
                    f"particular, got {camera_id}")
            for env_id in ids.tolist():
                self._await_one(env_id)
            return self._draw(ids.tolist(), camera_id)
        finally:
            self.is_busy = False

    cdef int _await_one(self, int64_t env_id) except -1:
        if not 0 <= env_id < self.num_envs:
            raise refused_id(f"{self.where}.render", env_id, self.num_envs, PUFFER_IDLE, False)
        while self.pool.stage[env_id] == PUFFER_SENT:
            self._wait(self.pool.num_ready + 1)
        if not puffer_has_begun(self.pool, <int32_t>env_id):
            raise APIUsageError(
                f"{self.where}.render: environment {env_id} has not begun an episode; reset it, or send it an action, "
                "and recv it")
        return 0

    cdef _draw(self, list env_ids, int32_t camera_id):
        cdef PufferSpec *spec = &self.pool.batch.spec
        cdef PufferCanvas canvas
        cdef uint8_t[:, :, ::1] pixels
        shape = (spec.picture_height, spec.picture_width, 3)
        wanted = (*self.spec.frame_shape, 3)
        frames, picture = empty((len(env_ids), *wanted), np.uint8), empty(shape, np.uint8)
        canvas.width, canvas.height, canvas.agent = spec.picture_width, spec.picture_height, camera_id
        for frame, env_id in zip(frames, env_ids, strict=True):
            pixels = frame if wanted == shape else picture
            canvas.pixels = &pixels[0, 0, 0]
            self.pool.batch.type.draw(puffer_game(&self.pool.batch, <int32_t>env_id), &canvas)
            if wanted != shape:
                scale_picture(picture, frame)
        return frames

    def close(self):
        """Close the games after the helpers have finished their work. Further calls do nothing."""
        if self.is_busy:
            raise self._closed_or_busy("close")
        puffer_envpool_free(self.pool)
        self.pool = NULL


cdef inline bint _is_plain(ArrayHead *head, char letter, int ndim) noexcept:
    """Return whether this is a C-contiguous array of this type of number. ``l`` matches every int64."""
    cdef char kind = head.dtype.type
    if kind == b"q":
        kind = b"l"
    return (kind == letter and head.ndim == ndim and is_native(head.dtype)
            and head.flags & ALIGNED_AND_CONTIGUOUS == ALIGNED_AND_CONTIGUOUS)


cdef inline int _width(char letter) noexcept:
    """Return the size of a number in bytes."""
    return 8 if letter == b"l" or letter == b"d" else 4


cdef tuple _sizes(const int32_t *sizes):
    return tuple([sizes[i] for i in range(puffer_num_dims(sizes))])
