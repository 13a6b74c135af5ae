/* Cartpole: push a cart so that the pole which is hinged on it stays upright.
 *
 * The state is kept as double, because the upright pole is unstable: an error grows 50-fold in a second.
 *
 * Observation  float[4]: position of the cart (m, 0 is the middle), its speed (m/s), angle of the pole (rad,
 *              0 is upright, grows to the right), its speed (rad/s).
 * Actions      Discrete(2): 0 push to the left, 1 push to the right; anything else does not push. With
 *              `continuous`, Box(1): the push as a share of `force`, clamped to [-1, 1].
 * Rewards      +1 for every step, the last one included.
 * Ends         terminal when the cart is more than 2.4 m from the middle or the pole more than 12 degrees
 *              from upright; truncation after max_steps steps.
 * Source       Gymnasium's CartPole-v1, after Barto, Sutton and Anderson (1983) with the friction left out
 *              and the equations of Florian (2007); a test compares them step by step.
 */
#ifndef CARTPOLE_H
#define CARTPOLE_H

#include <math.h>

#include "puffer_env.h"

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
    bool continuous;
    /* metrics */
    float score, perf;
    /* the parameters as double, masses as shares of the whole */
    double g, length, dt;
    double push;        /* m/s^2: acceleration of cart and pole together by the full force */
    double pole_share;  /* mass of the pole */
    double pole_moment; /* m: that times the length */
    /* state */
    double x, speed, angle, spin;
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
};

static const PufferMetric cartpole_metrics[] = {
    PUFFER_METRIC(Cartpole, score, "steps that the pole stayed up, the last one included"),
    PUFFER_METRIC(Cartpole, perf, "score as a share of max_steps"),
};
/* clang-format on */

static inline const char *cartpole_spec(const Cartpole *env, PufferSpec *spec) {
    const float rate = 1 / env->step_s;
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {4},
        .observation_low = -INFINITY,
        .observation_high = INFINITY,
        .action_kind = env->continuous ? PUFFER_BOX : PUFFER_DISCRETE,
        .action_sizes = {env->continuous ? 1 : 2},
        .agents = 1,
        .picture_width = 600,
        .picture_height = 320,
        .frames_per_second = rate < 60 ? (int32_t)(rate + 0.5f) : 60,
    };
    return NULL;
}

/* A parameter to six decimals: 9.8 as a float is 9.80000019, and would drift away from 9.8. */
static inline double cartpole_decimal(float value) {
    return (double)(int64_t)((double)value * 1e6 + 0.5) / 1e6;
}

static inline void cartpole_read_parameters(Cartpole *env) {
    const double pole = cartpole_decimal(env->pole_mass), total = cartpole_decimal(env->cart_mass) + pole;
    env->g = cartpole_decimal(env->gravity);
    env->length = cartpole_decimal(env->half_length);
    env->dt = cartpole_decimal(env->step_s);
    env->push = cartpole_decimal(env->force) / total;
    env->pole_share = pole / total;
    env->pole_moment = pole * env->length / total;
}

static inline void cartpole_observe(Cartpole *env) {
    float *observation = env->game.observations;
    observation[0] = (float)env->x;
    observation[1] = (float)env->speed;
    observation[2] = (float)env->angle;
    observation[3] = (float)env->spin;
}

/* Uniform in [-0.05, 0.05), and exact as a float, so that the first observation tells the whole state. */
static inline double cartpole_random_start(PufferRng *rng) {
    return (float)((double)puffer_random(rng) / 4294967296.0 * 0.1 - 0.05);
}

static inline void cartpole_reset(Cartpole *env) {
    cartpole_read_parameters(env);
    env->x = cartpole_random_start(&env->game.rng);
    env->speed = cartpole_random_start(&env->game.rng);
    env->angle = cartpole_random_start(&env->game.rng);
    env->spin = cartpole_random_start(&env->game.rng);
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

/* Sine and cosine of at most 12 degrees, by Taylor's series, to the last bit or two: quicker than the
 * library's, and the same on every machine. */
static inline double cartpole_sin(double angle) {
    const double q = angle * angle;
    const double tail = 1.0 / 5040 - q * (1.0 / 362880 - q * (1.0 / 39916800));
    return angle * (1 - q * (1.0 / 6 - q * (1.0 / 120 - q * tail)));
}

static inline double cartpole_cos(double angle) {
    const double q = angle * angle;
    const double tail = 1.0 / 720 - q * (1.0 / 40320 - q * (1.0 / 3628800));
    return 1 - q * (0.5 - q * (1.0 / 24 - q * tail));
}

static inline void cartpole_move(Cartpole *env, double direction) {
    const double sine = cartpole_sin(env->angle), cosine = cartpole_cos(env->angle);
    const double pull = env->push * direction + env->pole_moment * env->spin * env->spin * sine;
    const double inertia = env->length * (4.0 / 3.0 - env->pole_share * cosine * cosine);
    const double angular = (env->g * sine - cosine * pull) / inertia;
    const double linear = pull - env->pole_moment * angular * cosine;
    env->x += env->dt * env->speed;
    env->speed += env->dt * linear;
    env->angle += env->dt * env->spin;
    env->spin += env->dt * angular;
}

static inline PufferOutcome cartpole_step(Cartpole *env) {
    cartpole_move(env, cartpole_direction(env));
    cartpole_observe(env);
    env->game.rewards[0] = 1;
    const bool fallen = fabs(env->x) > CARTPOLE_MAX_X || fabs(env->angle) > CARTPOLE_MAX_ANGLE;
    if (!fallen && env->game.episode_length < env->max_steps) return PUFFER_RUNNING;
    env->score = (float)env->game.episode_length;
    env->perf = env->score / (float)env->max_steps;
    return fallen ? PUFFER_TERMINATED : PUFFER_TRUNCATED;
}

#endif
