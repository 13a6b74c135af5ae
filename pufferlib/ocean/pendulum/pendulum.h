/* Pendulum: swing a rod up with a torque that is too weak to lift it, and keep it upright.
 *
 * Observation  float[3]: cosine and sine of the rod's angle (0 is upright, positive counter-clockwise), and
 *              its angular speed (rad/s, at most 8).
 * Actions      Box(-2, 2): the torque (N m), counter-clockwise, clamped.
 * Rewards      minus: angle squared + 0.1 speed squared + 0.001 torque squared, before the step, with the
 *              angle in [-pi, pi].
 * Ends         truncation after max_steps steps. There are no terminals.
 * Source       Gymnasium's Pendulum-v1. A test checks that the same seed and actions give the same bytes. */
#ifndef PENDULUM_H
#define PENDULUM_H

#include <math.h>

#include "puffer_env.h"
#include "puffer_numpy.h"

#define PENDULUM_MAX_SPEED  8    /* rad/s */
#define PENDULUM_MAX_TORQUE 2    /* N m */
#define PENDULUM_STEP_S     0.05 /* s */
#define PENDULUM_UPRIGHT    0.2  /* rad */

typedef struct {
    PufferGame game;
    /* parameters */
    float g;      /* m/s^2 */
    float mass;   /* kg */
    float length; /* m */
    int32_t max_steps;
    /* metrics */
    float score, perf;
    /* accelerations in rad/s^2: by gravity if the rod is horizontal, and by a torque of 1 N m */
    double fall, push;
    /* state */
    double angle, speed;
    int32_t steps_upright;
    float torque; /* in the last step, N m */
    PufferGenerator generator;
} Pendulum;

static const char pendulum_about[] = "Swing a rod up and balance it: the physics of Gymnasium's Pendulum-v1.";

/* clang-format off */
static const PufferParameter pendulum_parameters[] = {
    PUFFER_PARAMETER(Pendulum, g, 10, -100, 100, "acceleration of a falling body, m/s^2"),
    PUFFER_PARAMETER(Pendulum, mass, 1, 0.01, 1000, "mass of the rod, kg"),
    PUFFER_PARAMETER(Pendulum, length, 1, 0.01, 100, "length of the rod, m"),
    PUFFER_PARAMETER(Pendulum, max_steps, 200, 1, 1000000, "steps until the episode is cut off"),
};

static const PufferMetric pendulum_metrics[] = {
    PUFFER_METRIC(Pendulum, score, "return: minus the costs of the episode"),
    PUFFER_METRIC(Pendulum, perf, "share of the steps with the rod within 0.2 rad of upright"),
};

static const PufferBounds pendulum_bounds[] = {{-1, 1}, {-1, 1}, {-PENDULUM_MAX_SPEED, PENDULUM_MAX_SPEED}};
/* clang-format on */

static inline const char *pendulum_spec(const Pendulum *env, PufferSpec *spec) {
    (void)env;
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {3},
        .observation_bounds = pendulum_bounds,
        .action_kind = PUFFER_BOX,
        .action_sizes = {1},
        .action_limit = PENDULUM_MAX_TORQUE,
        .agents = 1,
        .picture_width = 400,
        .picture_height = 400,
        .frames_per_second = 20,
    };
    return NULL;
}

static inline void pendulum_observe(Pendulum *env) {
    float *observation = env->game.observations;
    observation[0] = (float)cos(env->angle);
    observation[1] = (float)sin(env->angle);
    observation[2] = (float)env->speed;
}

static inline void pendulum_reset(Pendulum *env) {
    const double length = puffer_decimal(env->length), mass = puffer_decimal(env->mass);
    env->fall = 3 * puffer_decimal(env->g) / (2 * length);
    env->push = 3.0 / (mass * (length * length));
    env->angle = puffer_uniform(&env->generator, -PUFFER_PI, PUFFER_PI);
    env->speed = puffer_uniform(&env->generator, -1, 1);
    env->steps_upright = 0;
    env->torque = 0;
    pendulum_observe(env);
}

/* Wraps an angle to [-pi, pi). The sums are Gymnasium's. Usual angles need no division. */
static inline double pendulum_wrap(double angle) {
    const double turn = 2 * PUFFER_PI;
    double shifted = angle + PUFFER_PI;
    if (!(shifted >= 0 && shifted < turn)) {
        shifted = fmod(shifted, turn);
        if (shifted < 0) shifted += turn;
    }
    return shifted - PUFFER_PI;
}

static inline float pendulum_torque(const Pendulum *env) {
    const float action = *(const float *)env->game.actions;
    return action == action ? puffer_clamp(action, -PENDULUM_MAX_TORQUE, PENDULUM_MAX_TORQUE) : 0;
}

/* The cost of a step, before it. The torque is a float, and so is its cost. */
static inline double pendulum_cost(const Pendulum *env, double angle) {
    return puffer_power2(angle) + 0.1 * puffer_power2(env->speed) +
           (double)(0.001f * puffer_power2f(env->torque));
}

/* The operations, their order and precision are Gymnasium's. Others would change the last bits. */
static inline void pendulum_move(Pendulum *env) {
    const double push = (double)((float)env->push * env->torque);
    const double speed = env->speed + (env->fall * sin(env->angle) + push) * PENDULUM_STEP_S;
    const double most = PENDULUM_MAX_SPEED;
    env->speed = speed > most ? most : speed < -most ? -most : speed;
    env->angle += env->speed * PENDULUM_STEP_S;
}

static inline PufferOutcome pendulum_step(Pendulum *env) {
    const double angle = pendulum_wrap(env->angle);
    env->torque = pendulum_torque(env);
    env->steps_upright += fabs(angle) < PENDULUM_UPRIGHT;
    env->game.rewards[0] = (float)-pendulum_cost(env, angle);
    pendulum_move(env);
    pendulum_observe(env);
    if (env->game.episode_length < env->max_steps) return PUFFER_RUNNING;
    env->score = env->game.episode_return + env->game.rewards[0];
    env->perf = (float)env->steps_upright / (float)env->game.episode_length;
    return PUFFER_TRUNCATED;
}

#endif
