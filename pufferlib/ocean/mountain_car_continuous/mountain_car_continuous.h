/* Mountain car with a continuous force: rock a weak car up to the flag with as little force as possible.
 *
 * Observation  float[2]: position of the car (-1.2 to 0.6, with the valley at -0.52 and the flag at 0.45),
 *              and its speed (-0.07 to 0.07 per step).
 * Actions      Box(-1, 1): the force to the right as a fraction of the maximum, clamped.
 * Rewards      minus 0.1 force squared for every physics step, of which each action lasts frameskip. 100 at
 *              the goal.
 * Ends         terminal at the flag with at least goal_velocity, truncation after max_steps steps.
 * Source       Gymnasium's MountainCarContinuous-v0, after Moore (1990). A test checks that the same seed and
 *              actions give the same bytes. */
#ifndef MOUNTAIN_CAR_CONTINUOUS_H
#define MOUNTAIN_CAR_CONTINUOUS_H

#include <math.h>

#include "puffer_env.h"
#include "puffer_numpy.h"

#define MOUNTAIN_CAR_CONTINUOUS_LEFT_END  (-1.2)
#define MOUNTAIN_CAR_CONTINUOUS_RIGHT_END 0.6
#define MOUNTAIN_CAR_CONTINUOUS_FLAG      0.45
#define MOUNTAIN_CAR_CONTINUOUS_MAX_SPEED 0.07

typedef struct {
    PufferGame game;
    /* parameters */
    float goal_velocity;
    float power, gravity;
    int32_t frameskip;
    int32_t max_steps;
    /* metrics */
    float score, perf;
    /* parameters as double */
    double goal_speed, pull;
    /* state */
    double position, speed;
    float force; /* in the last step, in [-1, 1] */
    int32_t steps;
    PufferGenerator generator;
} MountainCarContinuous;

static const char mountain_car_continuous_about[] =
    "Rock a weak car out of a valley with little force: the physics of Gymnasium's MountainCarContinuous-v0.";

/* clang-format off */
static const PufferParameter mountain_car_continuous_parameters[] = {
    PUFFER_PARAMETER(MountainCarContinuous, goal_velocity, 0, -1, 1, "least speed at the flag that reaches the goal"),
    PUFFER_PARAMETER(MountainCarContinuous, power, 0.0015, 0, 1, "speed that a step of the full force adds"),
    PUFFER_PARAMETER(MountainCarContinuous, gravity, 0.0025, 0, 1, "most speed that a step of the slope adds"),
    PUFFER_PARAMETER(MountainCarContinuous, frameskip, 1, 1, 100, "steps that are played with one action"),
    PUFFER_PARAMETER(MountainCarContinuous, max_steps, 999, 1, 1000000, "steps until the episode is cut off"),
};

static const PufferMetric mountain_car_continuous_metrics[] = {
    PUFFER_METRIC(MountainCarContinuous, score, "return: 100 for the goal, minus what the force costs"),
    PUFFER_METRIC(MountainCarContinuous, perf, "share of episodes that reach the flag"),
};

static const PufferBounds mountain_car_continuous_bounds[] = {
    {(float)MOUNTAIN_CAR_CONTINUOUS_LEFT_END, (float)MOUNTAIN_CAR_CONTINUOUS_RIGHT_END},
    {(float)-MOUNTAIN_CAR_CONTINUOUS_MAX_SPEED, (float)MOUNTAIN_CAR_CONTINUOUS_MAX_SPEED},
};
/* clang-format on */

static inline const char *mountain_car_continuous_spec(const MountainCarContinuous *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {2},
        .observation_bounds = mountain_car_continuous_bounds,
        .action_kind = PUFFER_BOX,
        .action_sizes = {1},
        .agents = 1,
        .picture_width = 600,
        .picture_height = 400,
        .frames_per_second = puffer_max(30 / (float)env->frameskip, 1),
    };
    return NULL;
}

static inline void mountain_car_continuous_observe(MountainCarContinuous *env) {
    float *observation = env->game.observations;
    observation[0] = (float)env->position;
    observation[1] = (float)env->speed;
}

static inline void mountain_car_continuous_reset(MountainCarContinuous *env) {
    env->goal_speed = puffer_decimal(env->goal_velocity);
    env->pull = puffer_decimal(env->gravity);
    env->position = puffer_uniform(&env->generator, -0.6, -0.4);
    env->speed = 0;
    env->force = 0;
    env->steps = 0;
    mountain_car_continuous_observe(env);
}

static inline float mountain_car_continuous_force(const MountainCarContinuous *env) {
    const float action = *(const float *)env->game.actions;
    return action == action ? puffer_clamp(action, -1, 1) : 0;
}

/* Rounds a number like Gymnasium's state, which is double until the end of the first step, and float after
 * it. */
static inline double mountain_car_continuous_round(const MountainCarContinuous *env, double value) {
    return env->steps == 0 ? value : (double)(float)value;
}

static inline double mountain_car_continuous_bound(const MountainCarContinuous *env, double value, double low,
                                                   double high) {
    const double least = mountain_car_continuous_round(env, low),
                 most = mountain_car_continuous_round(env, high);
    return value > most ? most : value < least ? least : value;
}

/* The operations, their order and precision are Gymnasium's. Others would change the last bits. */
static inline void mountain_car_continuous_move(MountainCarContinuous *env) {
    const float push = env->force * (float)puffer_decimal(env->power);
    const float slope = (float)(env->pull * cos(mountain_car_continuous_round(env, 3 * env->position)));
    double speed = mountain_car_continuous_round(env, env->speed + (double)(push - slope));
    speed = mountain_car_continuous_bound(env, speed, -MOUNTAIN_CAR_CONTINUOUS_MAX_SPEED,
                                          MOUNTAIN_CAR_CONTINUOUS_MAX_SPEED);
    double position = mountain_car_continuous_round(env, env->position + speed);
    position = mountain_car_continuous_bound(env, position, MOUNTAIN_CAR_CONTINUOUS_LEFT_END,
                                             MOUNTAIN_CAR_CONTINUOUS_RIGHT_END);
    const double wall = mountain_car_continuous_round(env, MOUNTAIN_CAR_CONTINUOUS_LEFT_END);
    env->position = position;
    env->speed = position == wall && speed < 0 ? 0 : speed;
}

static inline bool mountain_car_continuous_is_there(const MountainCarContinuous *env) {
    return env->position >= mountain_car_continuous_round(env, MOUNTAIN_CAR_CONTINUOUS_FLAG) &&
           env->speed >= mountain_car_continuous_round(env, env->goal_speed);
}

/* One Gymnasium step. Returns true at the goal. */
static inline bool mountain_car_continuous_advance(MountainCarContinuous *env) {
    mountain_car_continuous_move(env);
    const bool is_there = mountain_car_continuous_is_there(env);
    const double reward = (is_there ? 100.0 : 0.0) - (double)env->force * (double)env->force * 0.1;
    env->position = (float)env->position;
    env->speed = (float)env->speed;
    env->game.rewards[0] += (float)reward;
    env->steps++;
    return is_there;
}

static inline PufferOutcome mountain_car_continuous_step(MountainCarContinuous *env) {
    bool is_there = false;
    env->force = mountain_car_continuous_force(env);
    for (int32_t i = 0; i < env->frameskip && !is_there && env->steps < env->max_steps; i++) {
        is_there = mountain_car_continuous_advance(env);
    }
    mountain_car_continuous_observe(env);
    if (!is_there && env->steps < env->max_steps) return PUFFER_RUNNING;
    env->score = env->game.episode_return + env->game.rewards[0];
    env->perf = is_there;
    return is_there ? PUFFER_TERMINATED : PUFFER_TRUNCATED;
}

#endif
