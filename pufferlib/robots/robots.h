/* One step of Gymnasium's MuJoCo robots, version 5, or of tasks of dm_control, on copies of one model.
 *
 * libmujoco is not linked, and the layout of its structs is not known here. Python passes the addresses of its
 * functions, of the model, and, for each copy, of its mjData and of the arrays in it.
 *
 * Results equal those of the packages byte by byte. So operations have the order and the precision of their NumPy
 * expressions. Where NumPy itself chooses the order, or an approximation, its own loops are called: sums, dot
 * products, sine, cosine, exp and log1p. */
#ifndef PUFFER_ROBOTS_H
#define PUFFER_ROBOTS_H

#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    ROBOT_MAX_ACTIONS = 256,
    ROBOT_MAX_BODIES = 256,
    ROBOT_READS = 3,
    ROBOT_MAX_WARNINGS = 32,
    ROBOT_FAULT_BYTES = 512
};

/* Arrays of a copy, in the order of ARRAYS in _robots.pyx. All but the last are of its mjData. */
typedef enum {
    ROBOT_QPOS,
    ROBOT_QVEL,
    ROBOT_CTRL,
    ROBOT_XPOS,
    ROBOT_XMAT,
    ROBOT_XIPOS,
    ROBOT_GEOM_XPOS,
    ROBOT_SITE_XPOS,
    ROBOT_CINERT,
    ROBOT_CVEL,
    ROBOT_QFRC_ACTUATOR,
    ROBOT_QFRC_CONSTRAINT,
    ROBOT_CFRC_EXT,
    ROBOT_SENSORDATA,
    ROBOT_PLACE, /* x and y, see RobotPlace */
    ROBOT_ARRAYS,
} RobotArray;

/* Infos of a step, in the order of INFOS in _robots.pyx. Each robot has some of them. */
typedef enum {
    ROBOT_X_POSITION,
    ROBOT_Y_POSITION,
    ROBOT_Z_DISTANCE,
    ROBOT_DISTANCE,
    ROBOT_X_VELOCITY,
    ROBOT_Y_VELOCITY,
    ROBOT_REWARD_FORWARD,
    ROBOT_REWARD_CTRL,
    ROBOT_REWARD_CONTACT,
    ROBOT_REWARD_SURVIVE,
    ROBOT_REWARD_DIST,
    ROBOT_REWARD_NEAR,
    ROBOT_DISTANCE_PENALTY,
    ROBOT_VELOCITY_PENALTY,
    ROBOT_REWARD_LINUP,
    ROBOT_REWARD_QUADCTRL,
    ROBOT_REWARD_IMPACT,
    ROBOT_INFOS,
} RobotInfo;

/* What happens to the numbers of a part of the observation. */
typedef enum { ROBOT_COPY, ROBOT_CLIP, ROBOT_SIN, ROBOT_COS, ROBOT_LOG1P, ROBOT_MINUS } RobotChange;

/* Numbers [start, start + count) of an array. ROBOT_MINUS subtracts those of `other_array` that start at `other`. */
typedef struct {
    int32_t array, start, count, change, other_array, other;
    double low, high; /* of ROBOT_CLIP */
} RobotPart;

/* The inner loop of a NumPy ufunc. */
typedef void (*RobotLoop)(char **arrays, const intptr_t *sizes, const intptr_t *strides, void *data);

typedef struct {
    RobotLoop loop;
    void *data;
} RobotUfunc;

typedef struct {
    RobotUfunc sum, single_sum, dot, sin, cos, exp, log1p;
} RobotNumpy;

/* Position of x and y whose change during a step is the velocity, or of a target, which stays for an episode. */
typedef enum { ROBOT_STANDS, ROBOT_ROOT, ROBOT_BODY, ROBOT_MASS_CENTER, ROBOT_TARGET } RobotPlace;

/* Test whether a robot that moves forward is healthy. */
typedef enum { ROBOT_ALWAYS, ROBOT_FINITE_Z, ROBOT_Z, ROBOT_Z_ANGLE, ROBOT_STATE_Z_ANGLE } RobotHealth;

/* Constants of a task: keyword arguments of its class, and numbers of the model. */
typedef struct {
    double dt, timestep, mass, initial_z;
    double forward, control, contact, healthy, near, dist; /* weights */
    double contact_low, contact_high, z_low, z_high, angle_low, angle_high, state_low, state_high;
    bool is_single;   /* the product of `control` and a float32 is a float32 */
    bool terminates;  /* an episode ends when the robot is not healthy */
    bool clips_force; /* forces are clipped to the contact range, instead of their cost */
    bool has_contact, clips_action;
    double speed, sizes[2];            /* of a task of dm_control */
    double scale;                      /* of the argument of a Gaussian reward */
    bool starts_halfway, ends_halfway; /* between mj_step1 and mj_step2, as in dm_control */
    bool reads_forces;                 /* contact forces, which mj_step does not compute */
    int32_t warnings;                  /* number of MuJoCo's warnings, which end a task of dm_control */
    int32_t place, health, z;          /* z: index of the height in qpos */
    int32_t frame_skip, max_steps;     /* 0 steps: no limit */
    int32_t positions, velocities, actions, bodies, numbers; /* numbers: of an observation */
    int32_t read[ROBOT_READS]; /* starts of numbers that the reward or the place reads */
} RobotTask;

/* Addresses of a copy. */
typedef struct {
    void *data;
    const int32_t *warnings; /* how often each was raised: every second number, as mjWarningStat has it */
    double *arrays[ROBOT_ARRAYS];
} RobotCopy;

/* Start of the message that libmujoco passes to a log handler. */
typedef struct {
    int level, topic;
    char subject[1024];
} RobotMessage;

enum { ROBOT_ERROR = 3 }; /* level */

typedef void (*RobotLogger)(const RobotMessage *message);

/* Functions of libmujoco. */
typedef struct {
    void (*step)(const void *model, void *data);  /* mj_step */
    void (*begin)(const void *model, void *data); /* mj_step1 */
    void (*end)(const void *model, void *data);   /* mj_step2 */
    void (*finish)(const void *model,
                   void *data); /* mj_rnePostConstraint, which computes the contact forces */
    RobotLogger (*set_logger)(RobotLogger logger); /* of this thread; returns the one before */
    RobotLogger (*usual_logger)(void);             /* of threads without one of their own */
    void **timer; /* mjcb_time, the clock of MuJoCo's own profile, or NULL for no profile */
} RobotEngine;

typedef struct Robot Robot;

typedef double (*RobotReward)(const Robot *robot, const RobotCopy *copy, const float *action,
                              const double *row, const double *before, const double *after, double *infos,
                              bool *is_over);

/* A robot, its copies, and the arrays that they share, with a row for each. */
struct Robot {
    const void *model;
    const double *body_mass;
    RobotEngine engine;
    char fault[ROBOT_FAULT_BYTES]; /* last error of libmujoco, or empty */
    RobotNumpy numpy;
    RobotTask task;
    RobotReward reward;
    const RobotPart *parts;
    int32_t num_parts;
    RobotCopy *copies;
    const int32_t *order;    /* copies of this step */
    const float *low, *high; /* bounds of actions */
    const float *actions;    /* or NULL */
    const double
        *double_actions; /* instead of them, for a task of dm_control whose action space has doubles */
    double *observations, *exact_rewards, *infos;
    float *single_observations; /* the same, or NULL */
    float *rewards;
    bool *terminals, *truncations;
    int32_t *elapsed;
};

/* ---- Arithmetic of NumPy ------------------------------------------------------------------------------ */

static inline double robot_sum(const Robot *robot, const double *numbers, intptr_t count) {
    double total = 0;
    char *arrays[] = {(char *)&total, (char *)(uintptr_t)numbers, (char *)&total};
    const intptr_t strides[] = {0, sizeof(double), 0};
    robot->numpy.sum.loop(arrays, &count, strides, robot->numpy.sum.data);
    return total;
}

static inline float robot_single_sum(const Robot *robot, const float *numbers, intptr_t count) {
    float total = 0;
    char *arrays[] = {(char *)&total, (char *)(uintptr_t)numbers, (char *)&total};
    const intptr_t strides[] = {0, sizeof(float), 0};
    robot->numpy.single_sum.loop(arrays, &count, strides, robot->numpy.single_sum.data);
    return total;
}

/* Euclidean norm. The dot product is that of the matrices (1, count) and (count, 1). */
static inline double robot_norm(const Robot *robot, const double *numbers, intptr_t count) {
    enum { D = sizeof(double) };
    double square = 0;
    char *arrays[] = {(char *)(uintptr_t)numbers, (char *)(uintptr_t)numbers, (char *)&square};
    const intptr_t sizes[] = {1, 1, count, 1};
    const intptr_t strides[] = {0, 0, 0, count * D, D, D, D, D, D};
    robot->numpy.dot.loop(arrays, sizes, strides, robot->numpy.dot.data);
    return sqrt(square);
}

static inline void robot_map(const RobotUfunc *ufunc, double *to, const double *from, intptr_t count) {
    char *arrays[] = {(char *)(uintptr_t)from, (char *)to};
    const intptr_t strides[] = {sizeof(double), sizeof(double)};
    ufunc->loop(arrays, &count, strides, ufunc->data);
}

/* x ** 2 of a NumPy number, which is not always x * x. A constant exponent would become a product. */
static inline double robot_square(double number) {
    const volatile double exponent = 2;
    return pow(number, exponent);
}

static inline double robot_clip(double number, double low, double high) {
    if (number < low) number = low;
    return number > high ? high : number;
}

/* ---- Parts of rewards --------------------------------------------------------------------------------- */

/* Cost of float32 actions. Returns a float32 if NumPy's product with the weight is one. */
static inline double robot_action_cost(const Robot *robot, const float *action) {
    float squares[ROBOT_MAX_ACTIONS];
    for (int32_t i = 0; i < robot->task.actions; i++) squares[i] = action[i] * action[i];
    const float total = robot_single_sum(robot, squares, robot->task.actions);
    if (robot->task.is_single) return (float)robot->task.control * total;
    return robot->task.control * (double)total;
}

/* Cost of the actions in the simulation, which are doubles. */
static inline double robot_control_cost(const Robot *robot, const RobotCopy *copy) {
    double squares[ROBOT_MAX_ACTIONS];
    const double *control = copy->arrays[ROBOT_CTRL];
    for (int32_t i = 0; i < robot->task.actions; i++) squares[i] = control[i] * control[i];
    return robot->task.control * robot_sum(robot, squares, robot->task.actions);
}

/* Cost of contact forces: either these or the cost are clipped. */
static inline double robot_contact_cost(const Robot *robot, const RobotCopy *copy) {
    const RobotTask *task = &robot->task;
    double squares[6 * ROBOT_MAX_BODIES];
    const double *forces = copy->arrays[ROBOT_CFRC_EXT];
    for (int32_t i = 0; i < 6 * task->bodies; i++) {
        const double force =
            task->clips_force ? robot_clip(forces[i], task->contact_low, task->contact_high) : forces[i];
        squares[i] = force * force;
    }
    const double cost = task->contact * robot_sum(robot, squares, 6 * task->bodies);
    return task->clips_force ? cost : robot_clip(cost, task->contact_low, task->contact_high);
}

static inline bool robot_is_within(const double *numbers, int32_t count, double low, double high) {
    for (int32_t i = 0; i < count; i++) {
        if (!(low < numbers[i] && numbers[i] < high)) return false;
    }
    return true;
}

static inline bool robot_is_finite(const double *numbers, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        if (!isfinite(numbers[i])) return false;
    }
    return true;
}

static inline bool robot_is_healthy(const RobotTask *task, const double *qpos, const double *qvel) {
    const int32_t z = task->z;
    switch (task->health) {
        case ROBOT_FINITE_Z:
            return robot_is_finite(qpos, task->positions) && robot_is_finite(qvel, task->velocities) &&
                   task->z_low <= qpos[z] && qpos[z] <= task->z_high;
        case ROBOT_STATE_Z_ANGLE:
            if (!robot_is_within(qpos + 2, task->positions - 2, task->state_low, task->state_high) ||
                !robot_is_within(qvel, task->velocities, task->state_low, task->state_high)) {
                return false;
            }
            /* fall through */
        case ROBOT_Z_ANGLE:
            if (!(task->angle_low < qpos[2] && qpos[2] < task->angle_high)) return false;
            /* fall through */
        case ROBOT_Z:
            return task->z_low < qpos[z] && qpos[z] < task->z_high;
        default:
            return true;
    }
}

/* Distance between two of the task's bodies. */
static inline double robot_gap(const Robot *robot, const RobotCopy *copy, int32_t from, int32_t to) {
    const double *a = copy->arrays[ROBOT_XPOS] + robot->task.read[from];
    const double *b = copy->arrays[ROBOT_XPOS] + robot->task.read[to];
    const double gap[] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return robot_norm(robot, gap, 3);
}

/* ---- Rewards of Gymnasium ---------------------------------------------------------------------------- */

/* Ant, HalfCheetah, Hopper, Humanoid, Swimmer and Walker2d: progress and health, minus costs. */
static double robot_forward(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                            const double *before, const double *after, double *infos, bool *is_over) {
    (void)row;
    const RobotTask *task = &robot->task;
    const double *qpos = copy->arrays[ROBOT_QPOS];
    const double forward = task->forward * ((after[0] - before[0]) / task->dt);
    double reward = forward;
    if (task->health != ROBOT_ALWAYS) {
        const bool is_healthy = robot_is_healthy(task, qpos, copy->arrays[ROBOT_QVEL]);
        infos[ROBOT_REWARD_SURVIVE] = is_healthy * task->healthy;
        reward = forward + infos[ROBOT_REWARD_SURVIVE];
        *is_over = !is_healthy && task->terminates;
    }
    const double control =
        task->place == ROBOT_MASS_CENTER ? robot_control_cost(robot, copy) : robot_action_cost(robot, action);
    double costs = control;
    if (task->has_contact) {
        const double contact = robot_contact_cost(robot, copy);
        infos[ROBOT_REWARD_CONTACT] = -contact;
        costs = control + contact;
    }
    infos[ROBOT_REWARD_FORWARD] = forward;
    infos[ROBOT_REWARD_CTRL] = -control;
    infos[ROBOT_X_POSITION] = qpos[0];
    infos[ROBOT_X_VELOCITY] = (after[0] - before[0]) / task->dt;
    infos[ROBOT_Y_POSITION] = qpos[1];
    infos[ROBOT_Y_VELOCITY] = (after[1] - before[1]) / task->dt;
    infos[ROBOT_Z_DISTANCE] = qpos[task->z] - task->initial_z;
    infos[ROBOT_DISTANCE] = robot_norm(robot, qpos, 2);
    return reward - costs;
}

/* HumanoidStandup: height, minus costs. */
static double robot_standup(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                            const double *before, const double *after, double *infos, bool *is_over) {
    (void)action, (void)row, (void)before, (void)after, (void)is_over;
    const RobotTask *task = &robot->task;
    const double *qpos = copy->arrays[ROBOT_QPOS];
    const double up = qpos[task->z] / task->timestep;
    const double control = robot_control_cost(robot, copy), impact = robot_contact_cost(robot, copy);
    infos[ROBOT_X_POSITION] = qpos[0];
    infos[ROBOT_Y_POSITION] = qpos[1];
    infos[ROBOT_Z_DISTANCE] = qpos[task->z] - task->initial_z;
    infos[ROBOT_REWARD_LINUP] = up;
    infos[ROBOT_REWARD_QUADCTRL] = -control;
    infos[ROBOT_REWARD_IMPACT] = -impact;
    return up - control - impact + 1;
}

/* InvertedDoublePendulum: survival, minus penalties for the position of the tip and for the speed. */
static double robot_double_pendulum(const Robot *robot, const RobotCopy *copy, const float *action,
                                    const double *row, const double *before, const double *after,
                                    double *infos, bool *is_over) {
    (void)action, (void)row, (void)before, (void)after;
    const double *tip = copy->arrays[ROBOT_SITE_XPOS], *speed = copy->arrays[ROBOT_QVEL];
    *is_over = tip[2] <= 1;
    const double distance = 0.01 * robot_square(tip[0]) + robot_square(tip[2] - 2);
    const double velocity = 0.001 * robot_square(speed[1]) + 0.005 * robot_square(speed[2]);
    const double alive = robot->task.healthy * !*is_over;
    infos[ROBOT_REWARD_SURVIVE] = alive;
    infos[ROBOT_DISTANCE_PENALTY] = -distance;
    infos[ROBOT_VELOCITY_PENALTY] = -velocity;
    return alive - distance - velocity;
}

/* InvertedPendulum: survival. */
static double robot_pendulum(const Robot *robot, const RobotCopy *copy, const float *action,
                             const double *row, const double *before, const double *after, double *infos,
                             bool *is_over) {
    (void)copy, (void)action, (void)before, (void)after;
    *is_over = !robot_is_finite(row, robot->task.numbers) || fabs(row[1]) > 0.2;
    infos[ROBOT_REWARD_SURVIVE] = !*is_over;
    return !*is_over;
}

/* Pusher: distances of the object to the arm and to the goal, and the actions. */
static double robot_pusher(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                           const double *before, const double *after, double *infos, bool *is_over) {
    enum { ARM, OBJECT, GOAL };
    (void)row, (void)before, (void)after, (void)is_over;
    const double near = -robot_gap(robot, copy, OBJECT, ARM) * robot->task.near;
    const double dist = -robot_gap(robot, copy, OBJECT, GOAL) * robot->task.dist;
    const double control = -robot_action_cost(robot, action);
    infos[ROBOT_REWARD_NEAR] = near;
    infos[ROBOT_REWARD_DIST] = dist;
    infos[ROBOT_REWARD_CTRL] = control;
    return dist + control + near;
}

/* Reacher: distance of the finger to the target, and the actions. */
static double robot_reacher(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                            const double *before, const double *after, double *infos, bool *is_over) {
    enum { FINGER, TARGET };
    (void)row, (void)before, (void)after, (void)is_over;
    const double dist = -robot_gap(robot, copy, FINGER, TARGET) * robot->task.dist;
    const double control = -robot_action_cost(robot, action);
    infos[ROBOT_REWARD_DIST] = dist;
    infos[ROBOT_REWARD_CTRL] = control;
    return dist + control;
}

/* ---- Rewards of dm_control ---------------------------------------------------------------------------- */

/* The value of a bell curve at a distance from its middle whose square is given. */
static inline double robot_bell(const Robot *robot, double square) {
    const double exponent = -0.5 * square;
    double value;
    robot_map(&robot->numpy.exp, &value, &exponent, 1);
    return value;
}

/* 1 from a bound on, and `least` at the distance of the margin below it. */
static inline double robot_slope(double number, double bound, double margin, double least) {
    if (bound <= number) return 1;
    const double part = (bound - number) / margin * (1 - least);
    return fabs(part) < 1 ? 1 - part : 0;
}

/* cheetah: speed. */
static double robot_run(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                        const double *before, const double *after, double *infos, bool *is_over) {
    (void)action, (void)row, (void)before, (void)after, (void)infos, (void)is_over;
    return robot_slope(copy->arrays[ROBOT_SENSORDATA][robot->task.read[0]], 10, 10, 0);
}

/* walker: height, upright torso and, unless it shall stand, speed. */
static double robot_walk(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                         const double *before, const double *after, double *infos, bool *is_over) {
    (void)action, (void)row, (void)before, (void)after, (void)infos, (void)is_over;
    const RobotTask *task = &robot->task;
    const double height = copy->arrays[ROBOT_XPOS][task->read[0] + 2];
    const double upright = (1 + copy->arrays[ROBOT_XMAT][task->read[1] + 8]) / 2;
    const double lack = (1.2 - height) / (1.2 / 2);
    const double standing = 1.2 <= height ? 1 : robot_bell(robot, robot_square(lack * task->scale));
    const double reward = (3 * standing + upright) / 4;
    if (task->speed == 0) return reward;
    const double speed = copy->arrays[ROBOT_SENSORDATA][task->read[2]];
    return reward * (5 * robot_slope(speed, task->speed, task->speed / 2, 0.5) + 1) / 6;
}

/* cartpole: upright pole, cart in the middle, small action, small speed. */
static double robot_balance(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                            const double *before, const double *after, double *infos, bool *is_over) {
    (void)action, (void)before, (void)after, (void)infos, (void)is_over;
    const double cart = fabs(row[0]) / 2 * robot->task.scale, speed = fabs(row[4]) / 5 * robot->task.scale;
    const double control = fabs(copy->arrays[ROBOT_CTRL][0]);
    const double upright = (row[1] + 1) / 2;
    const double centered = (1 + robot_bell(robot, robot_square(cart))) / 2;
    const double small_control = (4 + (control < 1 ? 1 - control * control : 0)) / 5;
    const double small_speed = (1 + robot_bell(robot, speed * speed)) / 2;
    return upright * small_control * small_speed * centered;
}

/* finger: the body spins. */
static double robot_spin(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                         const double *before, const double *after, double *infos, bool *is_over) {
    (void)action, (void)row, (void)before, (void)after, (void)infos, (void)is_over;
    return copy->arrays[ROBOT_SENSORDATA][robot->task.read[0]] <= -15;
}

/* ball_in_cup: the ball is in the cup. */
static double robot_catch(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                          const double *before, const double *after, double *infos, bool *is_over) {
    (void)action, (void)row, (void)before, (void)after, (void)infos, (void)is_over;
    const double *target = copy->arrays[ROBOT_SITE_XPOS] + robot->task.read[0];
    const double *ball = copy->arrays[ROBOT_XPOS] + robot->task.read[1];
    const double *sizes = robot->task.sizes;
    return fabs(target[0] - ball[0]) < sizes[0] && fabs(target[2] - ball[2]) < sizes[1];
}

/* reacher: the finger is in the target. */
static double robot_reach(const Robot *robot, const RobotCopy *copy, const float *action, const double *row,
                          const double *before, const double *after, double *infos, bool *is_over) {
    (void)copy, (void)action, (void)before, (void)after, (void)infos, (void)is_over;
    return robot_norm(robot, row + 2, 2) <= robot->task.sizes[0];
}

static const struct {
    const char *name;
    RobotReward reward;
} robot_rewards[] = {
    {"forward", robot_forward},   {"standup", robot_standup}, {"double_pendulum", robot_double_pendulum},
    {"pendulum", robot_pendulum}, {"pusher", robot_pusher},   {"reacher", robot_reacher},
    {"run", robot_run},           {"walk", robot_walk},       {"balance", robot_balance},
    {"spin", robot_spin},         {"catch", robot_catch},     {"reach", robot_reach},
};

/* Returns the function with this name, or NULL. */
static inline RobotReward robot_reward(const char *name) {
    for (size_t i = 0; i < sizeof robot_rewards / sizeof *robot_rewards; i++) {
        if (strcmp(robot_rewards[i].name, name) == 0) return robot_rewards[i].reward;
    }
    return NULL;
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

/* Writes the position that a velocity is computed from, or that of a target. */
static inline void robot_find_place(const Robot *robot, const RobotCopy *copy) {
    const RobotTask *task = &robot->task;
    const double *from = copy->arrays[ROBOT_QPOS];
    double *place = copy->arrays[ROBOT_PLACE];
    double sums[] = {0, 0};
    if (task->place == ROBOT_STANDS) return;
    if (task->place == ROBOT_MASS_CENTER) {
        from = copy->arrays[ROBOT_XIPOS];
        for (int32_t i = 0; i < task->bodies; i++) {
            sums[0] += robot->body_mass[i] * from[3 * i];
            sums[1] += robot->body_mass[i] * from[3 * i + 1];
        }
        place[0] = sums[0] / task->mass;
        place[1] = sums[1] / task->mass;
        return;
    }
    if (task->place == ROBOT_BODY) from = copy->arrays[ROBOT_XPOS] + task->read[0];
    if (task->place == ROBOT_TARGET) from = copy->arrays[ROBOT_GEOM_XPOS] + task->read[0];
    place[0] = from[0];
    place[1] = from[1];
}

/* Writes an observation. Returns whether it has a NaN. */
static inline bool robot_observe(const Robot *robot, const RobotCopy *copy, double *row) {
    double *to = row;
    bool has_nan = false;
    for (int32_t p = 0; p < robot->num_parts; to += robot->parts[p].count, p++) {
        const RobotPart *part = &robot->parts[p];
        const double *from = copy->arrays[part->array] + part->start;
        if (part->change == ROBOT_SIN) {
            robot_map(&robot->numpy.sin, to, from, part->count);
        } else if (part->change == ROBOT_COS) {
            robot_map(&robot->numpy.cos, to, from, part->count);
        } else if (part->change == ROBOT_LOG1P) {
            robot_map(&robot->numpy.log1p, to, from, part->count);
        } else if (part->change == ROBOT_CLIP) {
            for (int32_t i = 0; i < part->count; i++) to[i] = robot_clip(from[i], part->low, part->high);
        } else if (part->change == ROBOT_MINUS) {
            const double *other = copy->arrays[part->other_array] + part->other;
            for (int32_t i = 0; i < part->count; i++) to[i] = from[i] - other[i];
        } else {
            memcpy(to, from, (size_t)part->count * sizeof *to);
        }
    }
    for (int32_t i = 0; i < robot->task.numbers; i++) has_nan |= row[i] != row[i];
    return has_nan;
}

/* Begins an episode. The simulation is already reset. */
static inline void robot_begin(const Robot *robot, int32_t index) {
    robot_find_place(robot, &robot->copies[index]);
    robot->elapsed[index] = 0;
}

/* Simulates one step with the actions in `ctrl`. Returns whether it raised one of the warnings that are counted. */
static inline bool robot_simulate(const Robot *robot, const RobotCopy *copy) {
    const RobotTask *task = &robot->task;
    const RobotEngine *engine = &robot->engine;
    int32_t before[ROBOT_MAX_WARNINGS], steps = task->frame_skip;
    bool has_warned = false;
    for (int32_t i = 0; i < task->warnings; i++) before[i] = copy->warnings[2 * i];
    if (task->starts_halfway) {
        engine->end(robot->model, copy->data);
        steps--;
    }
    for (; steps > 0; steps--) engine->step(robot->model, copy->data);
    if (task->ends_halfway) {
        engine->begin(robot->model, copy->data);
    } else if (task->reads_forces) {
        engine->finish(robot->model, copy->data);
    }
    for (int32_t i = 0; i < task->warnings; i++) has_warned |= copy->warnings[2 * i] > before[i];
    return has_warned;
}

/* Steps one copy. A reward of NaN marks a NaN in the observation or the reward, or a warning. */
static inline void robot_step(const Robot *robot, int32_t index) {
    const RobotTask *task = &robot->task;
    const RobotCopy *copy = &robot->copies[index];
    const size_t first = (size_t)index * (size_t)task->actions;
    const float *action = robot->actions ? robot->actions + first : NULL;
    double *control = copy->arrays[ROBOT_CTRL];
    float clipped[ROBOT_MAX_ACTIONS];
    double *row = robot->observations + (size_t)index * (size_t)task->numbers;
    double *infos = robot->infos + (size_t)index * ROBOT_INFOS;
    const double *place = copy->arrays[ROBOT_PLACE];
    const double before[] = {place[0], place[1]};
    bool is_over = false;
    if (task->clips_action && action) {
        for (int32_t i = 0; i < task->actions; i++) {
            const float above = action[i] > robot->low[i] ? action[i] : robot->low[i];
            clipped[i] = above < robot->high[i] ? above : robot->high[i];
        }
        action = clipped;
    }
    for (int32_t i = 0; i < task->actions; i++) {
        control[i] = action ? action[i] : robot->double_actions[first + (size_t)i];
    }
    const bool has_warned = robot_simulate(robot, copy);
    if (task->place != ROBOT_TARGET) robot_find_place(robot, copy);
    const bool has_nan = robot_observe(robot, copy, row);
    if (robot->single_observations) {
        float *singles = robot->single_observations + (size_t)index * (size_t)task->numbers;
        for (int32_t i = 0; i < task->numbers; i++) singles[i] = (float)row[i];
    }
    const double reward = robot->reward(robot, copy, action, row, before, place, infos, &is_over);
    robot->exact_rewards[index] = has_warned || has_nan ? NAN : reward;
    robot->rewards[index] = (float)reward;
    robot->terminals[index] = is_over;
    robot->truncations[index] = ++robot->elapsed[index] >= task->max_steps && task->max_steps > 0;
}

/* The step that this thread computes. An error of libmujoco must not return to it, and would end the process. */
static _Thread_local struct {
    Robot *robot;
    jmp_buf back;
} robot_current;

static void robot_log(const RobotMessage *message) {
    Robot *robot = robot_current.robot;
    if (message->level >= ROBOT_ERROR) {
        strncpy(robot->fault, message->subject, ROBOT_FAULT_BYTES - 1);
        longjmp(robot_current.back, 1);
    }
    robot->engine.usual_logger()(message);
}

static void robot_step_some(void *context, int32_t begin, int32_t end) {
    Robot *robot = context;
    robot_current.robot = robot;
    const RobotLogger before = robot->engine.set_logger(robot_log);
    for (volatile int32_t i = begin; i < end; i++) {
        if (setjmp(robot_current.back) == 0) {
            robot_step(robot, robot->order[i]);
        } else {
            robot->exact_rewards[robot->order[i]] = NAN;
        }
    }
    robot->engine.set_logger(before);
}

#endif
