"""Steps of copies of a MuJoCo robot in C, shared by threads. All addresses come from the caller."""

import os

cimport cython
from libc.stdint cimport int32_t
from libcpp cimport bool as c_bool

from pufferlib.native.puffer_task cimport PUFFER_HELPER_NS, PufferHelpers, PufferTask
from pufferlib.ocean._ocean cimport shared_helpers

from pufferlib.errors import APIUsageError, PufferError

cdef extern from "robots.h" nogil:
    enum:
        ROBOT_ARRAYS
        ROBOT_INFOS
        ROBOT_MAX_ACTIONS
        ROBOT_MAX_BODIES
        ROBOT_MAX_WARNINGS
        ROBOT_READS
    ctypedef struct RobotPart:
        int32_t array, start, count, change, other_array, other
        double low, high
    ctypedef void (*RobotLoop)(char **, const Py_ssize_t *, const Py_ssize_t *, void *) noexcept
    ctypedef struct RobotUfunc:
        RobotLoop loop
        void *data
    ctypedef struct RobotNumpy:
        RobotUfunc sum, single_sum, dot, sin, cos, exp, log1p
    ctypedef struct RobotTask:
        double dt, timestep, mass, initial_z
        double forward, control, contact, healthy, near, dist
        double contact_low, contact_high, z_low, z_high, angle_low, angle_high, state_low, state_high
        double speed, scale
        double sizes[2]
        c_bool is_single, terminates, clips_force, has_contact, clips_action, starts_halfway, ends_halfway
        c_bool reads_forces
        int32_t place, health, z
        int32_t frame_skip, max_steps, warnings
        int32_t positions, velocities, actions, bodies, numbers
        int32_t read[ROBOT_READS]
    ctypedef struct RobotCopy:
        void *data
        int32_t *warnings
        double *arrays[ROBOT_ARRAYS]
    ctypedef double (*RobotReward)() noexcept
    ctypedef struct RobotEngine:
        void *step
        void *begin
        void *end
        void *finish
        void *set_logger
        void *usual_logger
        void **timer
    ctypedef struct Robot:
        void *model
        double *body_mass
        RobotEngine engine
        char *fault
        RobotNumpy numpy
        RobotTask task
        RobotReward reward
        RobotPart *parts
        int32_t num_parts
        RobotCopy *copies
        int32_t *order
        float *low
        float *high
        float *actions
        double *double_actions
        double *observations
        double *exact_rewards
        double *infos
        float *single_observations
        float *rewards
        c_bool *terminals
        c_bool *truncations
        int32_t *elapsed
    RobotReward robot_reward(const char *name)
    void robot_begin(const Robot *robot, int32_t index)
    void robot_step_some(void *robot, int32_t begin, int32_t end) noexcept

# Lists in the order of the enums of robots.h.
ARRAYS = ("qpos", "qvel", "ctrl", "xpos", "xmat", "xipos", "geom_xpos", "site_xpos", "cinert", "cvel", "qfrc_actuator",
          "qfrc_constraint", "cfrc_ext", "sensordata", "place")
INFOS = ("x_position", "y_position", "z_distance_from_origin", "distance_from_origin", "x_velocity", "y_velocity",
         "reward_forward", "reward_ctrl", "reward_contact", "reward_survive", "reward_dist", "reward_near",
         "distance_penalty", "velocity_penalty", "reward_linup", "reward_quadctrl", "reward_impact")
CHANGES = ("copy", "clip", "sin", "cos", "log1p", "minus")
PLACES = ("", "root", "body", "mass_center", "target")
HEALTH = ("", "finite z", "z", "z angle", "state z angle")
MAX_ACTIONS, MAX_BODIES, MAX_WARNINGS, READS = ROBOT_MAX_ACTIONS, ROBOT_MAX_BODIES, ROBOT_MAX_WARNINGS, ROBOT_READS
assert (len(ARRAYS), len(INFOS)) == (ROBOT_ARRAYS, ROBOT_INFOS)

# A ufunc as NumPy's C interface declares it. All versions have this layout, because compiled extensions depend on it.
cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        int nin, nout, nargs, identity;
        void **functions;
        void **data;
        int ntypes, reserved;
        const char *name;
        const char *types;
    } PufferUfuncHead;
    """
    ctypedef struct UfuncHead "PufferUfuncHead":
        int nargs, ntypes
        void **functions
        void **data
        const char *types

cdef enum:  # numbers of NumPy's types
    SINGLE = 11
    DOUBLE = 12


cdef RobotUfunc _loop_of(ufunc, int type_number) except *:
    """Return the inner loop of a ufunc for numbers of one type."""
    cdef UfuncHead *head = <UfuncHead *><void *>ufunc
    cdef RobotUfunc found
    cdef int i, j
    for i in range(head.ntypes):
        for j in range(head.nargs):
            if head.types[i * head.nargs + j] != type_number:
                break
        else:
            found.loop, found.data = <RobotLoop>head.functions[i], head.data[i] if head.data is not NULL else NULL
            return found
    raise APIUsageError(f"NumPy's {ufunc} has no loop for type number {type_number}")


# MuJoCo's Python package turns on its profile, which reads the clock hundreds of times in a step: a sixth of its time.
# Nothing reads the profile of our copies, so it is off while any of them is stepped. The GIL protects these variables.
cdef int steps_without_timer = 0
cdef void *stopped_timer = NULL


cdef void stop_timer(void **timer) noexcept:
    global steps_without_timer, stopped_timer
    if steps_without_timer == 0:
        stopped_timer, timer[0] = timer[0], NULL
    steps_without_timer += 1


cdef void restart_timer(void **timer) noexcept:
    global steps_without_timer
    steps_without_timer -= 1
    if steps_without_timer == 0 and timer[0] is NULL:  # nobody has set another one
        timer[0] = stopped_timer


@cython.final
cdef class RobotCopies:
    """Copies of a robot, and the arrays that they share, with a row for each copy.

    Args:
        reward: Name of the function in ``robots.h`` that computes the reward.
        task: Value of each field of ``RobotTask``.
        parts: Value of each field of ``RobotPart``, for each part of an observation.
        engine: Addresses in ``RobotEngine``.
        model: Address of the model.
        copies: For each copy, the addresses of its data, of its counts of warnings, and of its ``ARRAYS``.
        loops: NumPy's ufuncs ``add``, ``matmul``, ``sin``, ``cos``, ``exp`` and ``log1p``.
        num_threads: Maximum number of threads that work on a step.
        affinity: Field ``affinity`` of ``PufferTask``.
    """

    cdef Robot robot
    cdef PufferTask stepping
    cdef bytearray parts_memory, copies_memory
    cdef object kept  # owners of the memory that addresses point to

    def __cinit__(self, str reward, dict task, list parts, tuple engine, size_t model, list copies, tuple loops,
                  int32_t num_threads, int32_t affinity=0):
        cdef Robot *robot = &self.robot
        cdef Py_ssize_t i, j
        robot.reward = robot_reward(reward.encode())
        robot.task = task
        robot.engine.step, robot.engine.finish = <void *><size_t>engine[0], <void *><size_t>engine[1]
        robot.engine.begin, robot.engine.end = <void *><size_t>engine[2], <void *><size_t>engine[3]
        robot.engine.set_logger, robot.engine.usual_logger = <void *><size_t>engine[4], <void *><size_t>engine[5]
        robot.engine.timer = <void **><size_t>engine[6]
        robot.model = <void *>model
        self.parts_memory = bytearray(len(parts) * sizeof(RobotPart))
        cdef RobotPart *table = <RobotPart *><char *>self.parts_memory
        robot.parts, robot.num_parts = table, len(parts)
        for i, part in enumerate(parts):
            table[i] = part
        self.copies_memory = bytearray(len(copies) * sizeof(RobotCopy))
        robot.copies = <RobotCopy *><char *>self.copies_memory
        for i, addresses in enumerate(copies):
            robot.copies[i].data = <void *><size_t>addresses[0]
            robot.copies[i].warnings = <int32_t *><size_t>addresses[1]
            for j in range(len(ARRAYS)):
                robot.copies[i].arrays[j] = <double *><size_t>addresses[2 + j]
        add, matmul, sin, cos, exp, log1p = loops
        robot.numpy.sum, robot.numpy.single_sum = _loop_of(add, DOUBLE), _loop_of(add, SINGLE)
        robot.numpy.dot = _loop_of(matmul, DOUBLE)
        robot.numpy.sin, robot.numpy.cos = _loop_of(sin, DOUBLE), _loop_of(cos, DOUBLE)
        robot.numpy.exp, robot.numpy.log1p = _loop_of(exp, DOUBLE), _loop_of(log1p, DOUBLE)
        self.stepping.work, self.stepping.context = robot_step_some, robot
        self.stepping.threads, self.stepping.helper_ns = num_threads, PUFFER_HELPER_NS
        self.stepping.affinity = affinity
        self._check(shared_helpers().prepare(num_threads))

    def bind(self, const double[::1] body_mass, const float[::1] low, const float[::1] high, double[:, ::1] observations,
             float[:, ::1] single_observations, const float[:, ::1] actions, const double[:, ::1] double_actions,
             float[::1] rewards, c_bool[::1] terminals, c_bool[::1] truncations, double[::1] exact_rewards,
             double[:, ::1] infos, int32_t[::1] elapsed):
        """Use these arrays without copying them, and keep references to them.

        Observations are also written to ``single_observations``, unless these are None. Either ``actions`` or
        ``double_actions`` is None.
        """
        cdef Robot *robot = &self.robot
        robot.body_mass, robot.low, robot.high = <double *>&body_mass[0], <float *>&low[0], <float *>&high[0]
        robot.observations = &observations[0, 0]
        robot.actions = NULL if actions is None else <float *>&actions[0, 0]
        robot.double_actions = NULL if double_actions is None else <double *>&double_actions[0, 0]
        robot.rewards, robot.exact_rewards = &rewards[0], &exact_rewards[0]
        robot.terminals, robot.truncations = &terminals[0], &truncations[0]
        robot.infos, robot.elapsed = &infos[0, 0], &elapsed[0]
        robot.single_observations = NULL if single_observations is None else &single_observations[0, 0]
        self.kept = (body_mass, low, high, observations, single_observations, actions, double_actions, rewards,
                     terminals, truncations, exact_rewards, infos, elapsed)

    cdef int _check(self, int error) except -1:
        if error:
            raise PufferError(
                f"num_threads={self.stepping.threads} needs {self.stepping.threads - 1} helper threads, and one could not "
                f"be started ({os.strerror(error)}); choose a smaller num_threads, or raise the limits of this process or "
                "container on threads and memory")
        return 0

    def fault(self):
        """Return an error of libmujoco in the last step, or an empty text."""
        return self.robot.fault.decode()

    def begin(self, int32_t index):
        """Begin an episode of a copy whose simulation has been reset."""
        robot_begin(&self.robot, index)

    def step(self, const int32_t[::1] order):
        """Step the copies in ``order``, each at most once, with the actions in their rows."""
        cdef const PufferHelpers *helpers = shared_helpers()
        cdef int error
        if order.shape[0] == 0:
            return
        self.robot.fault[0] = 0
        self.robot.order, self.stepping.num_items = <int32_t *>&order[0], <int32_t>order.shape[0]
        stop_timer(self.robot.engine.timer)
        with nogil:
            error = helpers.run(&self.stepping)
        restart_timer(self.robot.engine.timer)
        self._check(error)
