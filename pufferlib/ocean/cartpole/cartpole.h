/* Cartpole: push a cart so that the pole hinged on it stays upright.
 *
 * The state is double, as in Gymnasium. The upright pole is unstable, and an error grows 50-fold in a second.
 *
 * Observation  float[4]: position of the cart (m, 0 is the center), its speed (m/s), angle of the pole (rad,
 *              0 is upright, positive to the right), its angular speed (rad/s).
 * Actions      Discrete(2): 0 push left, 1 push right. Any other number does not push. With `continuous`,
 *              Box(1): the push as a fraction of `force`, clamped to [-1, 1].
 * Rewards      +1 for every step, including the last one. With `sutton_barto_reward`, -1 when the pole falls
 *              or the cart leaves the track, and 0 otherwise.
 * Ends         terminal when the cart is more than 2.4 m from the center or the pole more than 12 degrees
 *              from upright, truncation after max_steps steps.
 * Source       Gymnasium's CartPole-v1, after Barto, Sutton and Anderson (1983) without friction and with the
 *              equations of Florian (2007). A test checks that the same seed and actions give the same bytes.
 *              CartPole-v0 is the same with max_steps 200. */
#ifndef CARTPOLE_H
#define CARTPOLE_H

#include <math.h>

#include "puffer_env.h"
#include "puffer_numpy.h"

#define CARTPOLE_MAX_X     2.4                 /* m */
#define CARTPOLE_MAX_ANGLE 0.20943951023931953 /* rad, 12 degrees */

enum { CARTPOLE_LEFT, CARTPOLE_RIGHT };

typedef struct {
    PufferGame game;
    /* parameters */
    float gravity;              /* m/s^2 */
    float cart_mass, pole_mass; /* kg */
    float half_length;          /* m */
    float force;                /* N */
    float step_s;
    int32_t max_steps;
    bool continuous, sutton_barto_reward;
    /* metrics */
    float score, perf;
    /* parameters as double */
    double g, length, dt, push;
    double pole, total; /* kg */
    double pole_moment; /* mass of the pole times its half length, kg m */
    /* state */
    double x, speed, angle, spin;
    double sine, cosine; /* of the angle */
    PufferGenerator generator;
} Cartpole;

static const char cartpole_about[] = "Balance a pole on a cart: the physics of Gymnasium's CartPole-v1.";

/* clang-format off */
static const PufferParameter cartpole_parameters[] = {
    PUFFER_PARAMETER(Cartpole, gravity, 9.8, 0, 100, "acceleration of a falling body, m/s^2"),
    PUFFER_PARAMETER(Cartpole, cart_mass, 1, 0.01, 1000, "mass of the cart, kg"),
    PUFFER_PARAMETER(Cartpole, pole_mass, 0.1, 0.01, 1000, "mass of the pole, kg"),
    PUFFER_PARAMETER(Cartpole, half_length, 0.5, 0.01, 100, "from the hinge to the middle of the pole, m"),
    PUFFER_PARAMETER(Cartpole, force, 10, 0, 1000, "force of a push, N"),
    PUFFER_PARAMETER(Cartpole, step_s, 0.02, 0.001, 1, "time from step to step, s"),
    PUFFER_PARAMETER(Cartpole, max_steps, 500, 1, 1000000, "steps until the episode is cut off"),
    PUFFER_PARAMETER(Cartpole, continuous, false, false, true, "actions are forces instead of directions"),
    PUFFER_PARAMETER(Cartpole, sutton_barto_reward, false, false, true, "reward -1 at the end instead of 1 a step"),
};

static const PufferMetric cartpole_metrics[] = {
    PUFFER_METRIC(Cartpole, score, "steps that the pole stayed up, the last one included"),
    PUFFER_METRIC(Cartpole, perf, "score as a share of max_steps"),
};
/* clang-format on */

/* Gymnasium's bounds: twice the terminal limits. */
static const PufferBounds cartpole_bounds[] = {{-2 * CARTPOLE_MAX_X, 2 * CARTPOLE_MAX_X},
                                               {-INFINITY, INFINITY},
                                               {-2 * CARTPOLE_MAX_ANGLE, 2 * CARTPOLE_MAX_ANGLE},
                                               {-INFINITY, INFINITY}};

/* Returns true if no step can leave the bounds, because forces and times are the default ones. */
static inline bool cartpole_is_usual(const Cartpole *env) {
    for (size_t i = 0; i < sizeof cartpole_parameters / sizeof *cartpole_parameters; i++) {
        const PufferParameter *parameter = &cartpole_parameters[i];
        const void *field = (const char *)env + parameter->offset;
        if (parameter->type == PUFFER_FLOAT32 && *(const float *)field != (float)parameter->value)
            return false;
    }
    return true;
}

static inline const char *cartpole_spec(const Cartpole *env, PufferSpec *spec) {
    const float rate = 1 / env->step_s;
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {4},
        .observation_low = -INFINITY,
        .observation_high = INFINITY,
        .observation_bounds = cartpole_is_usual(env) ? cartpole_bounds : NULL,
        .action_kind = env->continuous ? PUFFER_BOX : PUFFER_DISCRETE,
        .action_sizes = {env->continuous ? 1 : 2},
        .agents = 1,
        .picture_width = 600,
        .picture_height = 320,
        .frames_per_second = rate < 60 ? (int32_t)(rate + 0.5f) : 60,
    };
    return NULL;
}

static inline void cartpole_read_parameters(Cartpole *env) {
    env->g = puffer_decimal(env->gravity);
    env->length = puffer_decimal(env->half_length);
    env->dt = puffer_decimal(env->step_s);
    env->push = puffer_decimal(env->force);
    env->pole = puffer_decimal(env->pole_mass);
    env->total = env->pole + puffer_decimal(env->cart_mass);
    env->pole_moment = env->pole * env->length;
}

static inline void cartpole_observe(Cartpole *env) {
    float *observation = env->game.observations;
    observation[0] = (float)env->x;
    observation[1] = (float)env->speed;
    observation[2] = (float)env->angle;
    observation[3] = (float)env->spin;
}

/* Computed for the next step. The CPU overlaps this with the step of the next game, which does not depend on
 * it. This saves a tenth of a step's time. */
static inline void cartpole_read_angle(Cartpole *env) {
    env->sine = sin(env->angle);
    env->cosine = cos(env->angle);
}

static inline void cartpole_reset(Cartpole *env) {
    if (puffer_is_first(&env->game)) cartpole_read_parameters(env);
    env->x = puffer_uniform(&env->generator, -0.05, 0.05);
    env->speed = puffer_uniform(&env->generator, -0.05, 0.05);
    env->angle = puffer_uniform(&env->generator, -0.05, 0.05);
    env->spin = puffer_uniform(&env->generator, -0.05, 0.05);
    cartpole_read_angle(env);
    cartpole_observe(env);
}

/* The push in [-1, 1]. */
static inline double cartpole_direction(const Cartpole *env) {
    if (env->continuous) {
        const float action = *(const float *)env->game.actions;
        return action == action ? puffer_clamp(action, -1, 1) : 0;
    }
    const int32_t action = *(const int32_t *)env->game.actions;
    return (action == CARTPOLE_RIGHT) - (action == CARTPOLE_LEFT);
}

/* The operations and their order are Gymnasium's. Any other order would change the last bits. */
static inline void cartpole_move(Cartpole *env, double direction) {
    const double sine = env->sine, cosine = env->cosine;
    const double pull =
        (env->push * direction + env->pole_moment * (env->spin * env->spin) * sine) / env->total;
    const double inertia = env->length * (4.0 / 3.0 - env->pole * (cosine * cosine) / env->total);
    const double angular = (env->g * sine - cosine * pull) / inertia;
    const double linear = pull - env->pole_moment * angular * cosine / env->total;
    env->x += env->dt * env->speed;
    env->speed += env->dt * linear;
    env->angle += env->dt * env->spin;
    env->spin += env->dt * angular;
    cartpole_read_angle(env);
}

static inline PufferOutcome cartpole_step(Cartpole *env) {
    cartpole_move(env, cartpole_direction(env));
    cartpole_observe(env);
    const bool fallen = fabs(env->x) > CARTPOLE_MAX_X || fabs(env->angle) > CARTPOLE_MAX_ANGLE;
    env->game.rewards[0] = !env->sutton_barto_reward ? 1 : fallen ? -1 : 0;
    if (!fallen && env->game.episode_length < env->max_steps) return PUFFER_RUNNING;
    env->score = (float)env->game.episode_length;
    env->perf = env->score / (float)env->max_steps;
    return fallen ? PUFFER_TERMINATED : PUFFER_TRUNCATED;
}

#endif
