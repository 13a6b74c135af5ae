/* Enduro's traffic: cars appear, pass and are passed, and leave. */
#ifndef ENDURO_TRAFFIC_H
#define ENDURO_TRAFFIC_H

#include "state.h"

static inline bool enduro_quota_met(const Enduro *env) {
    return env->today >= env->todays_quota;
}

static inline void enduro_count_passed(Enduro *env) {
    EnduroCar *car = &env->cars[env->num_passed++];
    env->ahead[car->lane]--;
    if (!car->paid) {
        env->reward += env->reward_pass;
        env->streak += env->reward_streak;
    } else if (!enduro_quota_met(env)) {
        env->reward -= env->reward_repass;
    }
    car->paid = true;
    env->today++;
    env->passed++;
}

static inline void enduro_count_lost(Enduro *env) {
    env->ahead[env->cars[--env->num_passed].lane]++;
    env->repassed++;
    if (enduro_quota_met(env)) return;
    env->today -= env->today > 0;
    env->reward += env->reward_repass;
}

/* Shifts all cars by some places in their arrays. */
static inline void enduro_shift_cars(Enduro *env, int32_t from, int32_t to) {
    const size_t count = (size_t)env->num_cars;
    memmove(env->distances + to, env->distances + from, count * sizeof *env->distances);
    memmove(env->middles + to, env->middles + from, count * sizeof *env->middles);
    memmove(env->cars + to, env->cars + from, count * sizeof *env->cars);
}

/* Number of cars rounded up to vectors of four, so that loops have no remainder. */
static inline int32_t enduro_whole_vectors(const Enduro *env) {
    return (env->max_enemies + 3) & ~3;
}

/* All other cars have the same speed, so their order never changes. Distances are updated in vectors of four,
 * whatever the number of cars. */
static inline void enduro_move_traffic(Enduro *env) {
    float *distances = env->distances;
    const float length = env->car_length, gain = ENDURO_GAIN * env->speed;
    env->gain = gain;
    const int32_t whole = enduro_whole_vectors(env);
    for (int32_t i = 0; i < whole; i++) distances[i] -= gain;
    while (env->num_passed < env->num_cars && distances[env->num_passed] < -length) enduro_count_passed(env);
    while (env->num_passed > 0 && distances[env->num_passed - 1] > length) enduro_count_lost(env);
    while (env->num_cars > 0 && distances[env->num_cars - 1] > ENDURO_FAR) {
        env->ahead[env->cars[--env->num_cars].lane]--;
    }
    while (env->num_cars > 0 && distances[0] < -ENDURO_BEHIND) {
        env->num_cars--;
        env->num_passed--;
        enduro_shift_cars(env, 1, 0);
    }
}

static inline void enduro_add_car(Enduro *env, bool ahead, int32_t lane) {
    const int32_t place = ahead ? env->num_cars : 0;
    if (ahead) {
        env->ahead[lane]++;
    } else {
        enduro_shift_cars(env, 0, 1);
        env->num_passed++;
    }
    env->distances[place] = ahead ? ENDURO_FAR : -ENDURO_BEHIND;
    env->middles[place] = enduro_lane_middle(lane);
    env->cars[place] = (EnduroCar){.lane = (uint8_t)lane, .paint = env->next_paint++};
    env->num_cars++;
}

/* Bit i: there is a car in lane i, less than 6.5 car lengths from where new ones appear. */
static inline int32_t enduro_lanes_taken(const Enduro *env, bool ahead) {
    const float from = ahead ? ENDURO_FAR : -ENDURO_BEHIND, near = ENDURO_CLEAR_LENGTHS * env->car_length;
    int32_t taken = 0;
    for (int32_t i = 0; i < env->num_cars; i++) {
        if (fabsf(env->distances[i] - from) <= near) taken |= 1 << env->cars[i].lane;
    }
    return taken;
}

/* Adds one or two cars side by side, and leaves one lane free. */
static inline void enduro_add_row(Enduro *env, bool ahead) {
    PufferRng *rng = &env->game.rng;
    const int32_t first = puffer_random_below(rng, ENDURO_LANES);
    int32_t wanted = 1 + puffer_random_below(rng, 2), taken = enduro_lanes_taken(env, ahead);
    if (wanted > env->max_enemies - env->num_cars) wanted = env->max_enemies - env->num_cars;
    for (int32_t i = first; i < first + ENDURO_LANES && wanted > 0; i++) {
        const int32_t lane = i < ENDURO_LANES ? i : i - ENDURO_LANES;
        const bool in_the_way = !ahead && lane == enduro_own_lane(env);
        if (in_the_way || (taken | 1 << lane) == ENDURO_ALL_LANES) continue;
        enduro_add_car(env, ahead, lane);
        taken |= 1 << lane;
        wanted--;
    }
}

/* The next cars appear after 0.5 s on the first day, 0.1 s less on each following day, and in half of that
 * time at full speed, but not before there is room. */
static inline void enduro_spawn(Enduro *env) {
    static const float day_frames[] = {30, 24, 18, 12, 6};
    const int32_t last_day = sizeof day_frames / sizeof *day_frames - 1;
    if (env->spawn_frames > 0) env->spawn_frames--;
    if (env->spawn_frames > 0 || env->num_cars == env->max_enemies) return;
    const bool ahead = env->speed >= 0;
    if (env->num_cars > 0) {
        const float room =
            ahead ? ENDURO_FAR - env->distances[env->num_cars - 1] : env->distances[0] + ENDURO_BEHIND;
        if (room < env->spawn_gap) return;
    }
    enduro_add_row(env, ahead);
    const float chance = (float)(puffer_random(&env->game.rng) >> 8) * 0x1p-24f;
    env->spawn_gap = env->car_length * (1.5f + 6 * chance);
    const float frames = day_frames[env->day < last_day ? env->day : last_day];
    env->spawn_frames = (int32_t)(frames * (1 - 0.5f * enduro_speed_share(env)));
}

/* Returns the car that overlaps the player's, or -1. */
static inline int32_t enduro_overlapping_car(const Enduro *env) {
    for (int32_t i = 0; i < env->num_cars && env->distances[i] < env->car_length; i++) {
        if (env->distances[i] <= -env->car_length) continue;
        if (fabsf(env->x - env->middles[i]) < env->car_width) return i;
    }
    return -1;
}

static inline void enduro_collide(Enduro *env) {
    const int32_t car = enduro_overlapping_car(env);
    if (car < 0) env->untouchable &= env->crashed;
    if (car < 0 || env->untouchable) return;
    const float off = env->x - env->middles[car];
    env->thrown = off > 0 || (off == 0 && env->x <= 0) ? ENDURO_THROW : -ENDURO_THROW;
    env->stun = ENDURO_CRASH_FRAMES;
    env->crashed = env->untouchable = true;
    env->speed = ENDURO_SPEED_MIN;
    env->streak = 0;
    env->crashes++;
    env->reward += env->reward_crash;
}

#endif
