/* Enduro: a car race through day and night. Overtake a quota of cars each day, or the race is over.
 *
 * The road has three lanes and is seen from behind the car. Lengths along the road are in units of a quarter
 * of a car: traffic drives 1.25 per frame, the player 1 to 2. Lengths across the road are in px of a 152 by
 * 210 px screen, at the row of the player's car. A lane is 32 px wide. `speed` is the player's speed relative
 * to the traffic, -2.5 to 7.5. A tenth of it is gained on the traffic in a frame of 1/60 s. A step simulates
 * `frameskip` frames.
 *
 * Observation  float[18 + 5 * max_enemies], in [-1, 1]:
 *              - x of the car between the edges of the road, its y over 210 px, its speed from minimum to
 *                maximum
 *              - x of the left and right edge beside the car over 152 px, now and one frame ago
 *              - lane / 2
 *              - for each car in view, nearest ahead first, then those behind, nearest first: x over 152 px,
 *                y over 210 px, its movement in the last frame in tens of px, and 1 if it is in the player's
 *                lane. 0 for missing cars
 *              - direction of the road (0 left, 0.5 straight, 1 right)
 *              - direction in which the curve pushes the car (-1, 0, 1), strength of the push (up to 1), and
 *                sharpness of the curve (-1 left to 1 right)
 *              - time of day
 *              - cars still to be passed over today's quota
 *              - for each lane, the distance to the nearest car ahead over the maximum distance, 1 if there
 *                is none
 *              - time for which the car cannot be steered over the maximum
 * Actions      Discrete(9): 0 nothing, 1 accelerate, 2 right, 3 left, 4 brake, 5 brake and right, 6 brake and
 *              left, 7 accelerate and right, 8 accelerate and left. Any other number does nothing. With
 *              `continuous`, Box(2): steering from left to right, and throttle from full brake to full
 *              throttle, both clamped.
 * Rewards      per car passed for the first time, per car that passes the player, per completed day, per
 *              crash, and per contact with the edge. Per frame: after a crash, for a free lane ahead while
 *              faster than the traffic, and a bonus that grows with each car passed since the last crash.
 *              Passing a car again returns what it took when it passed the player.
 * Ends         terminal at the end of a day whose quota was not met, truncation after max_days.
 * Rules        There are four gears. The first accelerates twice as fast. A crash stops the car, throws it to
 *              the other edge of the road and takes 90 frames. During this time, and until it is clear of
 *              cars, there are no collisions. The edge costs speed and 20 frames. Curves push outwards. A day
 *              has 16 phases. In snow, steering is weak. In fog, cars become visible late. One or two cars at
 *              a time appear at the far end, or from behind if the player is slow, but not in its lane. Among
 *              cars within 6.5 lengths of each other, one lane is always free. Until the quota is met, a car
 *              that passes the player counts against it.
 * Source       PufferLib's Enduro, after Activision's game of 1983. There the last observation is never
 *              written, the terminal is lost, seeds are ignored, the second day has denser traffic than the
 *              next two, and the free lane is rewarded at any speed.
 *
 * A game takes 648 bytes. */
#ifndef ENDURO_H
#define ENDURO_H

#include "state.h"
#include "traffic.h"

static inline const char *enduro_spec(const Enduro *env, PufferSpec *spec) {
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {ENDURO_FIRST_SLOT + ENDURO_SLOT * env->max_enemies + 10},
        .observation_low = -1,
        .observation_high = 1,
        .action_kind = env->continuous ? PUFFER_BOX : PUFFER_DISCRETE,
        .action_sizes = {env->continuous ? 2 : ENDURO_ACTIONS},
        .agents = 1,
        .picture_width = env->width,
        .picture_height = env->height,
        .frames_per_second = 60.0f / (float)env->frameskip,
    };
    return NULL;
}

/* ---- Driving ---------------------------------------------------------------------------------------- */

typedef struct {
    float steering; /* -1 left to 1 right */
    float throttle; /* -1 brake to 1 full */
} EnduroControls;

static inline EnduroControls enduro_controls(const Enduro *env) {
    static const EnduroControls meanings[ENDURO_ACTIONS] = {
        [ENDURO_ACCELERATE] = {0, 1},
        [ENDURO_RIGHT] = {1, 0},
        [ENDURO_LEFT] = {-1, 0},
        [ENDURO_BRAKE] = {0, -1},
        [ENDURO_BRAKE_RIGHT] = {1, -1},
        [ENDURO_BRAKE_LEFT] = {-1, -1},
        [ENDURO_ACCELERATE_RIGHT] = {1, 1},
        [ENDURO_ACCELERATE_LEFT] = {-1, 1},
    };
    if (env->continuous) {
        const float *actions = env->game.actions;
        return (EnduroControls){puffer_clamp(actions[0], -1, 1), puffer_clamp(actions[1], -1, 1)};
    }
    const int32_t action = *(const int32_t *)env->game.actions;
    return meanings[action >= 0 && action < ENDURO_ACTIONS ? action : ENDURO_COAST];
}

/* The gears divide the range of speeds as 4 : 2.5 : 3.25 : 1.5. The first accelerates twice as fast. */
static inline int32_t enduro_gear(const Enduro *env) {
    const float unit = ENDURO_SPEED_RANGE / 11.25f, above = env->speed - ENDURO_SPEED_MIN;
    return (above >= 4 * unit) + (above >= 6.5f * unit) + (above >= 9.75f * unit);
}

static inline void enduro_change_speed(Enduro *env, float throttle) {
    static const float pull[ENDURO_GEARS] = {4, 2, 2, 2};
    const float forces[2] = {ENDURO_BRAKING, ENDURO_SPEED_RANGE / (11.25f * 60) * pull[enduro_gear(env)]};
    const float change = throttle * forces[throttle > 0];
    env->speed = puffer_clamp(env->speed + change, ENDURO_SPEED_MIN, ENDURO_SPEED_MAX);
}

static inline void enduro_steer(Enduro *env, float steering) {
    const float grip = enduro_is_snow(env) ? ENDURO_SNOW_GRIP : 1;
    env->x += steering * grip * (enduro_speed_share(env) + ENDURO_STEER_LEAST);
    env->x -= ENDURO_CURVE_PUSH * env->curve * fabsf(env->speed);
}

/* A car without control slides where it was thrown. */
static inline void enduro_drive(Enduro *env, EnduroControls controls) {
    if (env->stun == 0) {
        enduro_change_speed(env, controls.throttle);
        enduro_steer(env, controls.steering);
        return;
    }
    env->stun--;
    env->x += env->thrown;
    if (env->crashed) env->reward += env->reward_crashed;
    if (env->stun == 0) env->crashed = false;
}

/* For a car without control (`stunned`), the edge only stops it. */
static inline void enduro_touch_edge(Enduro *env, bool stunned) {
    const float limit = env->edge - 0.5f * env->car_width;
    if (fabsf(env->x) <= limit) return;
    const float side = env->x > 0 ? 1 : -1;
    env->x = side * limit;
    if (stunned) return;
    env->stun = ENDURO_EDGE_FRAMES;
    env->thrown = -side * ENDURO_REBOUND;
    env->speed = puffer_max(env->speed - ENDURO_EDGE_SPEED, ENDURO_SPEED_MIN);
    env->edge_hits++;
    env->reward += env->reward_edge;
}

/* ---- Observing -------------------------------------------------------------------------------------- */

static inline float enduro_bend(const Enduro *env) {
    return ENDURO_BEND * env->curve;
}

/* x on the screen of a point that is `x` px from the middle of the road. */
static inline float enduro_screen_x(float x, float scale, float bend) {
    return ENDURO_CENTRE + bend * (1 - scale) * (1 - scale) + x * scale;
}

static inline float enduro_screen_y(float row, float scale) {
    return ENDURO_HORIZON + (row - ENDURO_HORIZON) * scale;
}

/* Features of car i: [0][i] to [ENDURO_SLOT - 1][i]. */
typedef float EnduroCarFeatures[ENDURO_SLOT][ENDURO_MAX_CARS];

/* Computes all cars in vectors of four. Unused places contain old values, which are made harmless. */
static inline void enduro_compute_cars(const Enduro *env, EnduroCarFeatures numbers) {
    const float bend = enduro_bend(env), row = enduro_row(env),
                own = enduro_lane_middle(enduro_own_lane(env));
    const float last_bend = env->last_bend, last_row = env->last_row, gain = env->gain;
    const int32_t whole = enduro_whole_vectors(env);
    for (int32_t i = 0; i < whole; i++) {
        const float distance = puffer_max(env->distances[i], -ENDURO_BEHIND), middle = env->middles[i];
        const float scale = enduro_scale(distance), last_scale = enduro_scale(distance + gain);
        const float x = enduro_screen_x(middle, scale, bend), y = enduro_screen_y(row, scale);
        const float last_x = enduro_screen_x(middle, last_scale, last_bend);
        const float last_y = enduro_screen_y(last_row, last_scale);
        numbers[0][i] = x * (1 / ENDURO_SCREEN_WIDTH);
        numbers[1][i] = y * (1 / ENDURO_SCREEN_HEIGHT);
        numbers[2][i] = puffer_clamp((x - last_x) * 0.1f, -1, 1);
        numbers[3][i] = puffer_clamp((y - last_y) * 0.1f, -1, 1);
        numbers[4][i] = middle == own ? 1.0f : 0.0f;
    }
}

/* Writes the cars in view, and the nearest car ahead in each lane. Returns the number of filled slots. */
static inline int32_t enduro_observe_cars(const Enduro *env, float *slots, float *nearest) {
    const float far = enduro_is_fog(env) ? ENDURO_FOG : ENDURO_FAR;
    const int32_t passed = env->num_passed;
    int32_t shown = env->num_cars;
    EnduroCarFeatures numbers;
    enduro_compute_cars(env, numbers);
    while (shown > passed && env->distances[shown - 1] > far) shown--;
    for (int32_t i = 0; i < ENDURO_LANES; i++) nearest[i] = 1;
    for (int32_t car = shown - 1; car >= passed; car--) {
        float *slot = slots + ENDURO_SLOT * (car - passed);
        for (int32_t i = 0; i < ENDURO_SLOT; i++) slot[i] = numbers[i][car];
        nearest[env->cars[car].lane] = puffer_max(env->distances[car], 0) * (1 / ENDURO_FAR);
    }
    for (int32_t car = 0; car < passed; car++) {
        float *slot = slots + ENDURO_SLOT * (shown - 1 - car);
        for (int32_t i = 0; i < ENDURO_SLOT; i++) slot[i] = numbers[i][car];
    }
    return shown;
}

static inline void enduro_observe(Enduro *env) {
    float *observation = env->game.observations;
    float *slots = observation + ENDURO_FIRST_SLOT, *rest = slots + ENDURO_SLOT * env->max_enemies;
    const float edge = env->edge, push = -env->curve * fabsf(env->speed);
    const int32_t left = env->todays_quota - env->today;
    observation[0] = 0.5f + 0.5f * env->x / edge;
    observation[1] = enduro_row(env) * (1 / ENDURO_SCREEN_HEIGHT);
    observation[2] = puffer_clamp(enduro_speed_share(env), 0, 1);
    observation[3] = (ENDURO_CENTRE - edge) * (1 / ENDURO_SCREEN_WIDTH);
    observation[4] = (ENDURO_CENTRE + edge) * (1 / ENDURO_SCREEN_WIDTH);
    observation[5] = (ENDURO_CENTRE - env->last_edge) * (1 / ENDURO_SCREEN_WIDTH);
    observation[6] = (ENDURO_CENTRE + env->last_edge) * (1 / ENDURO_SCREEN_WIDTH);
    observation[7] = 0.5f * (float)enduro_own_lane(env);
    const int32_t shown = enduro_observe_cars(env, slots, rest + 6);
    for (int32_t i = ENDURO_SLOT * shown; i < ENDURO_SLOT * env->slots_shown; i++) slots[i] = 0;
    env->slots_shown = shown;
    rest[0] = 0.5f + 0.5f * (float)env->turn;
    rest[1] = (float)((push > 0) - (push < 0));
    rest[2] = fabsf(push) * (1 / ENDURO_SPEED_MAX);
    rest[3] = env->curve;
    rest[4] = enduro_time(env) * (1.0f / ENDURO_PHASES);
    rest[5] = left > 0 ? (float)left / (float)env->todays_quota : 0;
    rest[9] = (float)env->stun * (1.0f / ENDURO_CRASH_FRAMES);
}

/* ---- The race --------------------------------------------------------------------------------------- */

static inline void enduro_reset(Enduro *env) {
    memset(&env->score, 0, sizeof *env - offsetof(Enduro, score));
    memset(env->game.observations, 0,
           sizeof(float) * (size_t)(ENDURO_FIRST_SLOT + ENDURO_SLOT * env->max_enemies + 10));
    env->phase_per_frame = (float)ENDURO_PHASES / (float)env->day_frames;
    env->todays_quota = env->first_quota;
    env->speed = ENDURO_SPEED_MIN;
    enduro_begin_stretch(env);
    env->turn = 0; /* a race starts on a straight */
    enduro_place_narrow(env);
    env->edge = env->last_edge = enduro_edge(env, 0);
    env->last_row = enduro_row(env);
    enduro_observe(env);
}

/* Adds up the rewards, with factors of 0 and 1 instead of unpredictable branches. */
static inline void enduro_reward(Enduro *env) {
    const bool is_free = env->ahead[enduro_own_lane(env)] == 0;
    env->reward += env->streak * (float)(env->stun == 0);
    env->reward += env->reward_free_lane * (float)(is_free & (env->speed > 0));
}

static inline PufferOutcome enduro_end_day(Enduro *env) {
    if (!enduro_quota_met(env)) return PUFFER_TERMINATED;
    env->reward += env->reward_day;
    env->day++;
    env->day_frame = env->today = 0;
    env->todays_quota = env->quota;
    return env->day < env->max_days ? PUFFER_RUNNING : PUFFER_TRUNCATED;
}

static inline PufferOutcome enduro_play_frame(Enduro *env, EnduroControls controls) {
    env->last_edge = env->edge;
    env->last_bend = enduro_bend(env);
    env->last_row = enduro_row(env);
    const bool stunned = env->stun > 0;
    enduro_drive(env, controls);
    enduro_move_road(env);
    enduro_touch_edge(env, stunned);
    enduro_move_traffic(env);
    enduro_collide(env);
    enduro_spawn(env);
    enduro_reward(env);
    return ++env->day_frame < env->day_frames ? PUFFER_RUNNING : enduro_end_day(env);
}

static inline PufferOutcome enduro_step(Enduro *env) {
    const EnduroControls controls = enduro_controls(env);
    PufferOutcome outcome = PUFFER_RUNNING;
    env->reward = 0;
    for (int32_t frame = 0; frame < env->frameskip && outcome == PUFFER_RUNNING; frame++) {
        outcome = enduro_play_frame(env, controls);
    }
    env->game.rewards[0] += env->reward;
    enduro_observe(env);
    if (outcome == PUFFER_RUNNING) return outcome;
    env->score = (float)env->odometer;
    env->days_completed = (float)env->day;
    env->perf = env->days_completed / (float)env->max_days;
    return outcome;
}

#endif
