/* Acrobot: two links hang from a bar. Swing the tip up with a torque at the joint between the links.
 *
 * Observation  float[6]: cosine and sine of the first link's angle (0 hangs down), cosine and sine of the
 *              second link's angle (0 is in line with the first), and both angular speeds (rad/s).
 * Actions      Discrete(3): 0 torque of -1 N m at the joint, 1 none, 2 torque of 1 N m. Any other number is
 *              none.
 * Rewards      -1 for every physics step, of which each action lasts frameskip. 0 for the one that reaches
 *              the goal.
 * Ends         terminal when the tip is more than one link above the bar, truncation after max_steps steps.
 * Source       Gymnasium's Acrobot-v1, after Sutton (1996). A test checks that the same seed and actions give
 *              the same bytes, except for the last bit of cosines and sines in the first observation, which
 *              NumPy computes as float. */
#ifndef ACROBOT_H
#define ACROBOT_H

#include <math.h>

#include "puffer_env.h"
#include "puffer_numpy.h"

#define ACROBOT_MAX_SPEED_1 (4 * PUFFER_PI) /* rad/s */
#define ACROBOT_MAX_SPEED_2 (9 * PUFFER_PI)

enum { ACROBOT_NEGATIVE, ACROBOT_NONE, ACROBOT_POSITIVE };

/* Angles and speeds of both links, or their derivatives. */
typedef struct {
    double angle_1, angle_2, speed_1, speed_2;
} AcrobotState;

typedef struct {
    PufferGame game;
    /* parameters */
    float gravity;      /* m/s^2 */
    float step_s;       /* s */
    float torque_noise; /* N m */
    bool nips;
    int32_t frameskip;
    int32_t max_steps;
    /* metrics */
    float score, perf;
    /* gravity and step_s as double */
    double g, dt;
    /* state */
    AcrobotState state;
    double torque; /* in the last step, N m */
    int32_t steps;
    PufferGenerator generator;
} Acrobot;

static const char acrobot_about[] = "Swing the tip of two links up: the physics of Gymnasium's Acrobot-v1.";

/* clang-format off */
static const PufferParameter acrobot_parameters[] = {
    PUFFER_PARAMETER(Acrobot, gravity, 9.8, 0, 100, "acceleration of a falling body, m/s^2"),
    PUFFER_PARAMETER(Acrobot, step_s, 0.2, 0.001, 1, "time from step to step, s"),
    PUFFER_PARAMETER(Acrobot, torque_noise, 0, 0, 100, "most that chance adds to a torque, N m"),
    PUFFER_PARAMETER(Acrobot, nips, false, false, true, "the equations of the paper of 1996 instead of the book's"),
    PUFFER_PARAMETER(Acrobot, frameskip, 1, 1, 100, "steps that are played with one action"),
    PUFFER_PARAMETER(Acrobot, max_steps, 500, 1, 1000000, "steps until the episode is cut off"),
};

static const PufferMetric acrobot_metrics[] = {
    PUFFER_METRIC(Acrobot, score, "return: minus the steps until the tip was up"),
    PUFFER_METRIC(Acrobot, perf, "share of max_steps that was left"),
};

static const PufferBounds acrobot_bounds[] = {
    {-1, 1}, {-1, 1}, {-1, 1}, {-1, 1},
    {(float)-ACROBOT_MAX_SPEED_1, (float)ACROBOT_MAX_SPEED_1},
    {(float)-ACROBOT_MAX_SPEED_2, (float)ACROBOT_MAX_SPEED_2},
};
/* clang-format on */

static inline const char *acrobot_spec(const Acrobot *env, PufferSpec *spec) {
    const float rate = 1 / (env->step_s * (float)env->frameskip);
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {6},
        .observation_bounds = acrobot_bounds,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {3},
        .agents = 1,
        .picture_width = 480,
        .picture_height = 480,
        .frames_per_second =
            puffer_clamp(3 * rate, 1, 60), /* three times as fast as real time: 15, as in Gymnasium */
    };
    return NULL;
}

static inline void acrobot_observe(Acrobot *env) {
    float *observation = env->game.observations;
    const AcrobotState *state = &env->state;
    observation[0] = (float)cos(state->angle_1);
    observation[1] = (float)sin(state->angle_1);
    observation[2] = (float)cos(state->angle_2);
    observation[3] = (float)sin(state->angle_2);
    observation[4] = (float)state->speed_1;
    observation[5] = (float)state->speed_2;
}

/* The initial state has float precision. */
static inline void acrobot_reset(Acrobot *env) {
    double *numbers[] = {&env->state.angle_1, &env->state.angle_2, &env->state.speed_1, &env->state.speed_2};
    for (int32_t i = 0; i < 4; i++) *numbers[i] = (float)puffer_uniform(&env->generator, -0.1, 0.1);
    env->g = puffer_decimal(env->gravity);
    env->dt = puffer_decimal(env->step_s);
    env->torque = 0;
    env->steps = 0;
    acrobot_observe(env);
}

/* ---- Physics: links of 1 m, 1 kg and a moment of inertia of 1 kg m^2, with their mass in the middle.
 * The operations and their order are Gymnasium's. Any other order would change the last bits. */

/* Derivative of a state with this torque. */
static inline AcrobotState acrobot_change(const Acrobot *env, AcrobotState s) {
    const double cosine = cos(s.angle_2), sine = sin(s.angle_2);
    const double d1 = 0.25 + (1.25 + cosine) + 1 + 1, d2 = 0.25 + 0.5 * cosine + 1;
    const double phi2 = 0.5 * env->g * cos(s.angle_1 + s.angle_2 - PUFFER_PI / 2);
    const double phi1 = -0.5 * puffer_power2(s.speed_2) * sine - s.speed_2 * s.speed_1 * sine +
                        1.5 * env->g * cos(s.angle_1 - PUFFER_PI / 2) + phi2;
    double drive = env->torque + d2 / d1 * phi1;
    if (!env->nips) drive -= 0.5 * puffer_power2(s.speed_1) * sine;
    const double angular_2 = (drive - phi2) / (1.25 - puffer_power2(d2) / d1);
    return (AcrobotState){s.speed_1, s.speed_2, -(d2 * angular_2 + phi1) / d1, angular_2};
}

/* `from` after changing by `change` for `time`. */
static inline AcrobotState acrobot_after(AcrobotState from, double time, AcrobotState change) {
    return (AcrobotState){from.angle_1 + time * change.angle_1, from.angle_2 + time * change.angle_2,
                          from.speed_1 + time * change.speed_1, from.speed_2 + time * change.speed_2};
}

/* Six times the Runge-Kutta average of four derivatives. */
static inline double acrobot_weigh(double k1, double k2, double k3, double k4) {
    return k1 + 2 * k2 + 2 * k3 + k4;
}

static inline AcrobotState acrobot_integrate(const Acrobot *env) {
    const AcrobotState from = env->state;
    const AcrobotState k1 = acrobot_change(env, from);
    const AcrobotState k2 = acrobot_change(env, acrobot_after(from, env->dt / 2, k1));
    const AcrobotState k3 = acrobot_change(env, acrobot_after(from, env->dt / 2, k2));
    const AcrobotState k4 = acrobot_change(env, acrobot_after(from, env->dt, k3));
    const AcrobotState sum = {acrobot_weigh(k1.angle_1, k2.angle_1, k3.angle_1, k4.angle_1),
                              acrobot_weigh(k1.angle_2, k2.angle_2, k3.angle_2, k4.angle_2),
                              acrobot_weigh(k1.speed_1, k2.speed_1, k3.speed_1, k4.speed_1),
                              acrobot_weigh(k1.speed_2, k2.speed_2, k3.speed_2, k4.speed_2)};
    return acrobot_after(from, env->dt / 6, sum);
}

/* Wraps an angle to [-pi, pi]. Only unusual forces turn a link more than a few times per step. */
static inline double acrobot_wrap(double angle) {
    if (fabs(angle) > 100) angle = fmod(angle, 2 * PUFFER_PI);
    while (angle > PUFFER_PI) angle -= 2 * PUFFER_PI;
    while (angle < -PUFFER_PI) angle += 2 * PUFFER_PI;
    return angle;
}

static inline double acrobot_bound(double speed, double limit) {
    return speed > limit ? limit : speed < -limit ? -limit : speed;
}

static inline void acrobot_move(Acrobot *env, int32_t action) {
    const double noise = puffer_decimal(env->torque_noise);
    env->torque = (action == ACROBOT_POSITIVE) - (action == ACROBOT_NEGATIVE);
    if (noise > 0) env->torque += puffer_uniform(&env->generator, -noise, noise);
    const AcrobotState next = acrobot_integrate(env);
    env->state = (AcrobotState){acrobot_wrap(next.angle_1), acrobot_wrap(next.angle_2),
                                acrobot_bound(next.speed_1, ACROBOT_MAX_SPEED_1),
                                acrobot_bound(next.speed_2, ACROBOT_MAX_SPEED_2)};
}

/* Height of the tip above the bar in m. */
static inline double acrobot_height(const Acrobot *env) {
    return -cos(env->state.angle_1) - cos(env->state.angle_2 + env->state.angle_1);
}

static inline PufferOutcome acrobot_step(Acrobot *env) {
    bool is_up = false;
    for (int32_t i = 0; i < env->frameskip && !is_up && env->steps < env->max_steps; i++) {
        acrobot_move(env, *(const int32_t *)env->game.actions);
        env->steps++;
        is_up = acrobot_height(env) > 1;
        env->game.rewards[0] -= is_up ? 0 : 1;
    }
    acrobot_observe(env);
    if (!is_up && env->steps < env->max_steps) return PUFFER_RUNNING;
    env->score = env->game.episode_return + env->game.rewards[0];
    env->perf = 1 - (float)env->steps / (float)env->max_steps;
    return is_up ? PUFFER_TERMINATED : PUFFER_TRUNCATED;
}

#endif
