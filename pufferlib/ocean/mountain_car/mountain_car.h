/* Mountain car: a car in a valley is too weak to drive up to the flag. It has to gain speed by rocking.
 *
 * Observation  float[2]: position of the car (-1.2 to 0.6, with the valley at -0.52 and the flag at 0.5), and
 *              its speed (-0.07 to 0.07 per step).
 * Actions      Discrete(3): 0 accelerate to the left, 1 coast, 2 accelerate to the right. Any other number
 *              coasts.
 * Rewards      -1 for every physics step, of which each action lasts frameskip.
 * Ends         terminal at the flag with at least goal_velocity, truncation after max_steps steps.
 * Source       Gymnasium's MountainCar-v0, after Moore (1990). A test checks that the same seed and actions
 *              give the same bytes. */
#ifndef MOUNTAIN_CAR_H
#define MOUNTAIN_CAR_H

#include <math.h>

#include "puffer_env.h"
#include "puffer_numpy.h"

#define MOUNTAIN_CAR_LEFT_END  (-1.2)
#define MOUNTAIN_CAR_RIGHT_END 0.6
#define MOUNTAIN_CAR_FLAG      0.5
#define MOUNTAIN_CAR_MAX_SPEED 0.07

enum { MOUNTAIN_CAR_LEFT, MOUNTAIN_CAR_COAST, MOUNTAIN_CAR_RIGHT };

typedef struct {
    PufferGame game;
    /* parameters */
    float goal_velocity;
    float force, gravity;
    int32_t frameskip;
    int32_t max_steps;
    /* metrics */
    float score, perf;
    /* parameters as double */
    double goal_speed, push, pull;
    /* state */
    double position, speed;
    int32_t direction; /* of the last push: -1, 0 or 1 */
    int32_t steps;
    PufferGenerator generator;
} MountainCar;

static const char mountain_car_about[] =
    "Rock a weak car out of a valley: the physics of Gymnasium's MountainCar-v0.";

/* clang-format off */
static const PufferParameter mountain_car_parameters[] = {
    PUFFER_PARAMETER(MountainCar, goal_velocity, 0, -1, 1, "least speed at the flag that reaches the goal"),
    PUFFER_PARAMETER(MountainCar, force, 0.001, 0, 1, "speed that a step of acceleration adds"),
    PUFFER_PARAMETER(MountainCar, gravity, 0.0025, 0, 1, "most speed that a step of the slope adds"),
    PUFFER_PARAMETER(MountainCar, frameskip, 1, 1, 100, "steps that are played with one action"),
    PUFFER_PARAMETER(MountainCar, max_steps, 200, 1, 1000000, "steps until the episode is cut off"),
};

static const PufferMetric mountain_car_metrics[] = {
    PUFFER_METRIC(MountainCar, score, "return: minus the steps of the episode"),
    PUFFER_METRIC(MountainCar, perf, "share of episodes that reach the flag"),
};

static const PufferBounds mountain_car_bounds[] = {
    {(float)MOUNTAIN_CAR_LEFT_END, (float)MOUNTAIN_CAR_RIGHT_END},
    {(float)-MOUNTAIN_CAR_MAX_SPEED, (float)MOUNTAIN_CAR_MAX_SPEED},
};
/* clang-format on */

static inline const char *mountain_car_spec(const MountainCar *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {2},
        .observation_bounds = mountain_car_bounds,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {3},
        .agents = 1,
        .picture_width = 600,
        .picture_height = 400,
        .frames_per_second = puffer_max(30 / (float)env->frameskip, 1),
    };
    return NULL;
}

static inline double mountain_car_bound(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

static inline void mountain_car_observe(MountainCar *env) {
    float *observation = env->game.observations;
    observation[0] = (float)env->position;
    observation[1] = (float)env->speed;
}

static inline void mountain_car_reset(MountainCar *env) {
    env->goal_speed = puffer_decimal(env->goal_velocity);
    env->push = puffer_decimal(env->force);
    env->pull = puffer_decimal(env->gravity);
    env->position = puffer_uniform(&env->generator, -0.6, -0.4);
    env->speed = 0;
    env->direction = 0;
    env->steps = 0;
    mountain_car_observe(env);
}

/* The operations and their order are Gymnasium's. Any other order would change the last bits. */
static inline void mountain_car_move(MountainCar *env) {
    const double speed = env->speed + (env->direction * env->push + cos(3 * env->position) * -env->pull);
    env->speed = mountain_car_bound(speed, -MOUNTAIN_CAR_MAX_SPEED, MOUNTAIN_CAR_MAX_SPEED);
    env->position =
        mountain_car_bound(env->position + env->speed, MOUNTAIN_CAR_LEFT_END, MOUNTAIN_CAR_RIGHT_END);
    if (env->position == MOUNTAIN_CAR_LEFT_END && env->speed < 0) env->speed = 0;
}

static inline PufferOutcome mountain_car_step(MountainCar *env) {
    const int32_t action = *(const int32_t *)env->game.actions;
    env->direction = (action == MOUNTAIN_CAR_RIGHT) - (action == MOUNTAIN_CAR_LEFT);
    bool is_there = false;
    for (int32_t i = 0; i < env->frameskip && !is_there && env->steps < env->max_steps; i++) {
        mountain_car_move(env);
        env->steps++;
        env->game.rewards[0] -= 1;
        is_there = env->position >= MOUNTAIN_CAR_FLAG && env->speed >= env->goal_speed;
    }
    mountain_car_observe(env);
    if (!is_there && env->steps < env->max_steps) return PUFFER_RUNNING;
    env->score = -(float)env->steps;
    env->perf = is_there;
    return is_there ? PUFFER_TERMINATED : PUFFER_TRUNCATED;
}

#endif
