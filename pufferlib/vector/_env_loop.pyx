"""Step loop over the environments of one process, each on its own rows."""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from pufferlib.emulation._pack cimport ALWAYS_CHECKED_BYTES
from pufferlib.emulation._rows cimport REWARDS, TERMINALS, TRUNCATIONS, EmulatedRows, Rows, five_values
from pufferlib.native._arrays cimport holds_nan
from pufferlib.native._python cimport PyDict_GET_SIZE, PyList_GET_SIZE
from pufferlib.vector._copies cimport MAX_DEPTH, copied_below

from collections.abc import Mapping

import numpy as np

from pufferlib.emulation._steps import GymnasiumStep, PettingZooStep
from pufferlib.buffers import clear_rows
from pufferlib.env import reset_values, step_values
from pufferlib.errors import APIUsageError

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef object ndarray = np.ndarray

cdef tuple OUTCOME = ("observations", "rewards", "terminals", "truncations")
cdef tuple OTHERS = ("masks", "final_observations")


cdef class EnvSlot:
    """Environment of a runner, with its rows.

    Args:
        env: Environment.
        spec: Spec that it was built from.
        buffers: Arrays of its rows.
        autoreset: Autoreset mode.
    """

    cdef readonly object env, spec, autoreset
    cdef readonly dict buffers
    cdef Py_ssize_t reset_infos  # index of the first info of the last reset

    def __init__(self, env, spec, dict buffers, autoreset):
        self.env, self.spec, self.buffers, self.autoreset = env, spec, buffers, autoreset

    cdef int begin(self, seed, options, list infos) except -1:
        """Start new episodes, and append copies of the infos to ``infos``."""
        raise NotImplementedError

    cdef object reset_env(self, seed, options):
        """Call ``reset`` of the environment and return its result."""
        if options is None:
            return self.env.reset(seed=seed)
        try:
            return self.env.reset(seed=seed, options=options)
        except TypeError as error:
            if "keyword argument 'options'" not in str(error):
                raise
            raise APIUsageError(
                f"{type(self.env).__name__}: reset must take options if they are given, got a reset without; "
                "define reset(self, seed=None, options=None)"
            ) from error

    cdef int act(self, list infos) except -1:
        """Step with the actions in the rows, and append copies of the infos to ``infos``."""
        raise NotImplementedError


cdef class NativeSlot(EnvSlot):
    """Slot of a native PufferEnv, which writes its own rows and resets itself."""

    cdef object actions
    cdef tuple arrays
    cdef bint seen_a_step
    cdef const void *numbers[2]  # observations and rewards
    cdef Py_ssize_t counts[2]
    cdef int real_bytes[2]  # itemsize if the dtype is floating point, else 0
    cdef bint are_few  # whether observations are small enough to be checked in each step

    def __init__(self, env, spec, dict buffers, autoreset):
        cdef int place
        EnvSlot.__init__(self, env, spec, buffers, autoreset)
        self.actions = buffers["actions"]
        self.arrays = tuple([buffers[name] for name in OUTCOME])
        for place in range(2):
            array = self.arrays[place]
            self.numbers[place] = <const void *><size_t>array.ctypes.data
            self.counts[place] = array.size
            self.real_bytes[place] = array.itemsize if array.dtype.kind == "f" else 0
        self.are_few = self.arrays[0].nbytes <= ALWAYS_CHECKED_BYTES

    cdef int begin(self, seed, options, list infos) except -1:
        self.reset_infos = PyList_GET_SIZE(infos)
        observations, env_infos = reset_values(self.env, self.reset_env(seed, options))
        self.check_in_place(0, observations)
        self.check_others()
        for array in self.arrays[1:]:
            array[...] = 0
        self.check_nan(0)
        return self.collect(env_infos, infos)

    cdef int act(self, list infos) except -1:
        cdef int place
        cdef tuple outcome = self.step()
        for place in range(4):
            if outcome[place] is not self.arrays[place] or not self.seen_a_step:
                self.check_in_place(place, outcome[place])
        if not self.seen_a_step:
            self.check_others()
        self.seen_a_step = True
        self.reset_infos = PY_SSIZE_T_MAX
        if self.are_few:
            self.check_nan(0)
        self.check_nan(1)
        return self.collect(outcome[4], infos)

    cdef inline int check_nan(self, int place) except -1:
        if self.real_bytes[place] and holds_nan(self.numbers[place], self.real_bytes[place], self.counts[place]):
            rows = np.isnan(self.arrays[place]).reshape(len(self.arrays[place]), -1).any(1)
            raise APIUsageError(
                f"{type(self.env).__name__}: {OUTCOME[place]} must be numbers, got nan in row {int(rows.argmax())}; "
                "look for a division by zero"
            )
        return 0

    cdef tuple step(self):
        outcome = self.env.step(self.actions)
        if type(outcome) is not tuple or len(<tuple>outcome) != 5:
            outcome = step_values(self.env, outcome)
        return <tuple>outcome

    cdef int collect(self, env_infos, list infos) except -1:
        if not isinstance(env_infos, list):
            raise APIUsageError(
                f"{type(self.env).__name__}: infos must be a list of dicts, got {type(env_infos).__name__}; return []"
            )
        for info in <list>env_infos:
            if info:
                infos.append(copied_below(info, MAX_DEPTH))
        return 0

    cdef int check_in_place(self, int place, value) except -1:
        name = OUTCOME[place]
        for array in (value, getattr(self.env, name)):
            self.check_array(name, array, f", and returned as self.{name}")
        return 0

    cdef int check_others(self) except -1:
        for name in OTHERS:
            self.check_array(name, getattr(self.env, name), "")
        return 0

    cdef int check_array(self, str name, array, str addition) except -1:
        if not isinstance(array, ndarray) or array.size and not np.may_share_memory(array, self.buffers[name]):
            raise APIUsageError(
                f"{type(self.env).__name__}: {name} must be written in place, self.{name}[:] = ...{addition}; "
                "got another array, which the batch would never see"
            )
        return 0


cdef class EmulatedSlot(EnvSlot):
    """Slot of a Gymnasium or PettingZoo environment behind emulation, which this slot resets."""

    cdef Rows rows
    cdef EmulatedRows compiled  # the environment, if it can be stepped without its Python methods
    cdef object actions
    cdef bint per_agent, same_step, disabled

    def __init__(self, env, spec, dict buffers, autoreset):
        EnvSlot.__init__(self, env, spec, buffers, autoreset)
        self.per_agent = hasattr(env, "possible_agents")
        self.actions = buffers["actions"] if self.per_agent else buffers["actions"][0, ...]
        self.same_step, self.disabled = autoreset == "same_step", autoreset == "disabled"
        self.rows = Rows()
        self.rows.bind_all(buffers)

    cdef int begin(self, seed, options, list infos) except -1:
        self.reset_infos = PyList_GET_SIZE(infos)
        _, env_infos = self.reset_env(seed, options)
        self.compiled = self.env if has_own_step(self.env) else None
        return self.collect(env_infos, infos)

    cdef int act(self, list infos) except -1:
        if self.over():
            if not self.disabled:
                return self.begin(None, None, infos)
            self.rows.show_ended()
            return 0
        self.reset_infos = PY_SSIZE_T_MAX
        if self.compiled is not None and not self.compiled.replaced:
            env_infos = self.compiled.act_on_rows()
        else:
            env_infos = self.step_as_user_wrote()
        if type(env_infos) is not dict or PyDict_GET_SIZE(env_infos):
            self.collect(env_infos, infos)
        if self.same_step and self.rows.copy_final_observations() and self.over():
            self.begin_in_same_step(infos)
        return 0

    cdef inline bint over(self) except -1:
        if self.compiled is None or self.compiled.replaced:
            return self.env.done
        return self.compiled.is_over

    cdef object step_as_user_wrote(self):
        """Call ``step`` of a user's subclass and return the info."""
        outcome = self.env.step(self.actions if self.actions.ndim else self.actions.item())
        outcome = five_values(outcome, type(self.env).__name__, "what the step that it replaces returns", "")
        self.check_shown(outcome)
        return outcome[4]

    cdef int check_shown(self, tuple outcome) except -1:
        """Raise unless ``step`` of a user's subclass returned the values in the rows, which the batch uses."""
        for name, values in zip(OUTCOME, outcome):
            array = self.buffers[name]
            if isinstance(values, Mapping):
                pairs = zip(map(values.get, self.env.possible_agents), array)
            else:
                pairs = [(values, array if self.per_agent else array[0])]
            for value, shown in pairs:
                if value is not None and not is_same(value, shown):
                    raise APIUsageError(
                        f"{type(self.env).__name__}: step must return the values in its rows, which the batch uses, "
                        f"got {value!r:.80} where self.{name} has {shown!r:.80}; write it there too, or change it in "
                        "a wrapper around the environment, before the emulation"
                    )
        return 0

    cdef int begin_in_same_step(self, list infos) except -1:
        """Reset, and keep the rewards and end flags of the step before it."""
        cdef Py_ssize_t count = self.rows.num_rows
        cdef bytes rewards = self.rows.at(REWARDS)[:count * sizeof(float)]
        cdef bytes terminals = self.rows.at(TERMINALS)[:count]
        cdef bytes truncations = self.rows.at(TRUNCATIONS)[:count]
        self.begin(None, None, infos)
        memcpy(self.rows.at(REWARDS), <const char *>rewards, count * sizeof(float))
        memcpy(self.rows.at(TERMINALS), <const char *>terminals, count)
        memcpy(self.rows.at(TRUNCATIONS), <const char *>truncations, count)
        return 0

    cdef int collect(self, env_infos, list infos) except -1:
        if env_infos and not isinstance(env_infos, Mapping):
            raise APIUsageError(f"emulation: the info must be a dict, got {env_infos!r:.80} from {self.env}; return {{}}")
        if self.per_agent and env_infos:  # MeanOverAgents returns numbers instead of infos by agent
            env_infos = {key: info for key, info in env_infos.items() if info or not isinstance(info, dict)}
        if env_infos:
            infos.append(copied_below(env_infos, MAX_DEPTH))
        return 0


cdef bint is_same(value, shown) except -1:
    """Return whether ``value``, converted to the dtype of ``shown``, equals it."""
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(value).astype(shown.dtype)
    except (TypeError, ValueError):
        return False
    return np.array_equal(array.ravel(), shown.ravel())


cdef bint has_own_step(env):
    """Return whether ``env`` is emulated and its class does not override ``step`` or ``done``."""
    for kind in (GymnasiumStep, PettingZooStep):
        if isinstance(env, kind):
            return type(env).step is kind.step and type(env).done is kind.done
    return False


cdef class EnvLoop:
    """Loop that resets and steps environments one after the other.

    Args:
        slots: Slots of the environments.

    Attributes:
        sources: Source code of each info of the last call: twice the position of its environment, plus 1 for a reset.
    """

    cdef readonly list sources
    cdef tuple slots  # a tuple, so that environments cannot change it while they run
    cdef Py_ssize_t position
    cdef Py_buffer word
    cdef uint32_t *progress
    cdef Py_buffer notice_view
    cdef unsigned char own_notice
    cdef unsigned char *notice  # nonzero if the environments are to be notified
    cdef dict lost_seeds  # seeds of the next episodes, by position, while rows show lost episodes, else None

    def __cinit__(self):
        self.notice = &self.own_notice

    def __init__(self, list slots):
        self.slots = tuple(slots)
        self.sources = []
        self.lost_seeds = None

    def __dealloc__(self):
        PyBuffer_Release(&self.word)
        PyBuffer_Release(&self.notice_view)

    def track(self, progress):
        """Also write the current position to ``progress``, the memory of a uint32, from now on."""
        PyBuffer_Release(&self.word)
        self.progress = NULL
        PyObject_GetBuffer(progress, &self.word, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        if self.word.len < <Py_ssize_t>sizeof(uint32_t):
            raise APIUsageError(f"EnvLoop.track: expected memory of at least 4 bytes, got {self.word.len}")
        self.progress = <uint32_t *>self.word.buf

    def watch(self, notice):
        """Use ``notice``, one byte of memory, as the notification flag, so that another process can set it."""
        PyObject_GetBuffer(notice, &self.notice_view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        self.notice = <unsigned char *>self.notice_view.buf

    def notify(self):
        """Call ``notify`` of all environments before the next reset or step."""
        self.notice[0] = 1

    cdef int notify_all(self) except -1:
        cdef Py_ssize_t position
        self.notice[0] = 0
        try:
            for position in range(len(self.slots)):
                self.at(position).env.notify()
        except BaseException as error:
            error.add_note(f"while notifying environment {self.slots[self.position].spec.index}")
            raise
        return 0

    cdef inline EnvSlot at(self, Py_ssize_t position):
        self.position = position
        if self.progress is not NULL:
            self.progress[0] = <uint32_t>position
        return <EnvSlot>self.slots[position]

    def reset(self, seeds, options=None, positions=None):
        """Start new episodes. Return the infos.

        Args:
            seeds: Seeds, one for each environment to reset.
            options: Options, one for each environment to reset. None is not passed on.
            positions: Positions of the environments to reset. None for all.
        """
        cdef list infos = []
        cdef EnvSlot slot
        self.sources = []
        positions = range(len(self.slots)) if positions is None else positions
        options = [None] * len(positions) if options is None else options
        if self.notice[0]:
            self.notify_all()
        try:
            for position, seed, each in zip(positions, seeds, options, strict=True):
                slot = self.at(position)
                if self.lost_seeds is not None:
                    lost_seed = self.lost_seeds.pop(position, None)
                    seed = lost_seed if seed is None else seed
                slot.begin(seed, each, infos)
                self.note_sources(slot, position, infos)
        except BaseException as error:
            error.add_note(f"while resetting environment {self.at(self.position).spec.index} with seed {seed}")
            raise
        self.lost_seeds = self.lost_seeds or None
        return infos

    cdef inline int note_sources(self, EnvSlot slot, Py_ssize_t position, list infos) except -1:
        """Record the sources of the new entries of ``infos``."""
        cdef Py_ssize_t place
        for place in range(PyList_GET_SIZE(self.sources), PyList_GET_SIZE(infos)):
            self.sources.append(2 * position + (place >= slot.reset_infos))
        return 0

    def step(self):
        """Step every environment with the actions in its rows. Return the infos."""
        cdef list infos = []
        cdef Py_ssize_t position
        cdef EnvSlot slot
        if self.lost_seeds is not None:
            return self.step_lost()
        if PyList_GET_SIZE(self.sources):
            self.sources = []
        if self.notice[0]:
            self.notify_all()
        try:
            for position in range(len(self.slots)):
                slot = self.at(position)
                slot.act(infos)
                if PyList_GET_SIZE(infos) != PyList_GET_SIZE(self.sources):
                    self.note_sources(slot, position, infos)
        except BaseException as error:
            self.note_actions(error)
            raise
        return infos

    def step_at(self, Py_ssize_t position):
        """Step one environment with the actions in its rows. Return the infos."""
        cdef list infos = []
        if not 0 <= position < len(self.slots):
            raise IndexError(f"environment {position} of {len(self.slots)}")
        if self.notice[0]:
            self.notify_all()
        try:
            self.at(position).act(infos)
        except BaseException as error:
            self.note_actions(error)
            raise
        return infos

    cdef int note_actions(self, error) except -1:
        """Add a note about the environment being stepped, and its actions, to an error."""
        cdef EnvSlot slot = self.slots[self.position]
        error.add_note(f"while stepping environment {slot.spec.index} with actions {slot.buffers['actions'].tolist()}")
        return 0

    def show_ended(self, seeds):
        """Clear all rows to show that episodes were lost, until the next reset of each environment.

        ``seeds`` are those of the next episodes, unless that reset has others. With autoreset "next_step", the next step
        is this reset.
        """
        self.lost_seeds = dict(enumerate(seeds))
        self.sources = []
        for slot in self.slots:
            clear_rows((<EnvSlot>slot).buffers)

    cdef list step_lost(self):
        """Step the environments that were reset after the loss. The others start episodes, or wait for their reset."""
        cdef list infos = [], sources = []
        cdef Py_ssize_t position
        cdef bint resets = (<EnvSlot>self.slots[0]).autoreset == "next_step"
        lost = dict(self.lost_seeds)  # a copy, because a reset removes those that it starts
        if resets:
            infos += EnvLoop.reset(self, [lost[position] for position in lost], None, list(lost))  # no override
            sources += self.sources
        for position in range(len(self.slots)):
            if position not in lost:
                self.sources = []
                found = self.step_at(position)
                self.note_sources(self.slots[position], position, found)
                infos += found
                sources += self.sources
            elif not resets:
                clear_rows((<EnvSlot>self.slots[position]).buffers)
        self.sources = sources
        return infos
