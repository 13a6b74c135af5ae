/* Enduro's constants, parameters and state, and the shape of its road. */
#ifndef ENDURO_STATE_H
#define ENDURO_STATE_H

#include <math.h>

#include "puffer_env.h"

/* px of the screen */
#define ENDURO_SCREEN_WIDTH  152.0f
#define ENDURO_SCREEN_HEIGHT 210.0f
#define ENDURO_HORIZON       52.0f
#define ENDURO_DASHBOARD     160.0f /* top of the dashboard */
#define ENDURO_ROW           143.0f /* row of the player's car at minimum speed */
#define ENDURO_ROW_SLIDE     9.0f   /* this much higher at full speed */
#define ENDURO_CENTRE        76.0f
#define ENDURO_ROAD_HALF     48.0f
#define ENDURO_LANE          32.0f
#define ENDURO_BEND          40.0f /* shift of the vanishing point by a full curve */
#define ENDURO_NARROWING     6.0f  /* of each side of the road at a narrow place */
#define ENDURO_FOCUS         20.0f /* at this distance everything is half as large */
#define ENDURO_FAR           160.0f
#define ENDURO_FOG           48.0f
#define ENDURO_BEHIND        8.0f
#define ENDURO_NARROW_LENGTH 30.0f /* half length */
#define ENDURO_CLEAR_LENGTHS 6.5f
/* speeds, per frame */
#define ENDURO_SPEED_MIN   -2.5f
#define ENDURO_SPEED_MAX   7.5f
#define ENDURO_SPEED_RANGE (ENDURO_SPEED_MAX - ENDURO_SPEED_MIN)
#define ENDURO_GAIN        0.1f /* on the traffic, at a speed of 1 */
#define ENDURO_BRAKING     0.01f
#define ENDURO_STEER_LEAST 0.3f /* px, plus 1 at full speed */
#define ENDURO_SNOW_GRIP   0.6f
#define ENDURO_CURVE_PUSH  0.025f
#define ENDURO_CURVE_EASE  0.05f
#define ENDURO_THROW       1.0f /* px, of a crashed car */
#define ENDURO_REBOUND     0.5f /* px, of a car that touched the edge */
#define ENDURO_EDGE_SPEED  1.25f
#define ENDURO_TURN        0.0004f /* of the horizon in a full curve, in circles */

enum {
    ENDURO_COAST,
    ENDURO_ACCELERATE,
    ENDURO_RIGHT,
    ENDURO_LEFT,
    ENDURO_BRAKE,
    ENDURO_BRAKE_RIGHT,
    ENDURO_BRAKE_LEFT,
    ENDURO_ACCELERATE_RIGHT,
    ENDURO_ACCELERATE_LEFT,
    ENDURO_ACTIONS
};
enum { ENDURO_GEARS = 4, ENDURO_LANES = 3, ENDURO_ALL_LANES = 7, ENDURO_MAX_CARS = 32 };
enum { ENDURO_CRASH_FRAMES = 90, ENDURO_EDGE_FRAMES = 20 };
enum { ENDURO_PHASES = 16, ENDURO_SNOW_PHASE = 3, ENDURO_FOG_FIRST = 11, ENDURO_FOG_LAST = 12 };
enum { ENDURO_STRETCH = 1500, ENDURO_STRETCH_MORE = 3800, ENDURO_STRAIGHT = 200, ENDURO_STRAIGHT_MORE = 600 };
enum { ENDURO_FIRST_SLOT = 8, ENDURO_SLOT = 5 };

typedef struct {
    uint8_t lane;  /* 0 is left */
    uint8_t paint; /* for rendering */
    bool paid;     /* passed before */
} EnduroCar;

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t width, height;
    int32_t max_enemies, frameskip;
    int32_t day_frames, first_quota, quota, max_days;
    float car_width, car_length;
    float reward_pass, reward_repass, reward_day, reward_crash, reward_edge;
    float reward_crashed, reward_free_lane, reward_streak;
    bool continuous;
    /* metrics */
    float score, perf, days_completed, passed, repassed, crashes, edge_hits;
    /* state: the player */
    float x; /* from the middle of the road, px */
    float speed;
    float streak; /* bonus per frame */
    float reward; /* of this step so far; not behind a pointer, which would prevent optimizations */
    int32_t stun; /* frames until the car can be steered again */
    float thrown; /* px per frame while stunned */
    bool crashed; /* stunned by a crash */
    bool untouchable;
    /* the road */
    double odometer, stretch_end;
    float curve;     /* -1 left to 1 right */
    int32_t turn;    /* value that the curve approaches: -1, 0, 1 */
    float narrow_at; /* distance of the narrow place */
    float edge;      /* distance from the middle of the road, beside the player */
    float heading;   /* in circles, for the horizon */
    /* one frame ago: edge, vanishing point, row, and distance gained on the traffic since then */
    float last_edge, last_bend, last_row, gain;
    /* the day */
    int32_t day, day_frame, today, todays_quota;
    float phase_per_frame;
    /* traffic, sorted by distance; the first num_passed are behind */
    int32_t num_cars, num_passed, spawn_frames, slots_shown;
    uint8_t ahead[ENDURO_LANES]; /* number of cars per lane that are not behind */
    uint8_t next_paint;
    float spawn_gap;
    float distances[ENDURO_MAX_CARS]; /* ahead of the player; separate arrays, to be vectors */
    float middles[ENDURO_MAX_CARS];   /* of their lanes */
    EnduroCar cars[ENDURO_MAX_CARS];
} Enduro;

static const char enduro_about[] = "Overtake enough cars every day, through curves, snow, night and fog.";

/* clang-format off */
static const PufferParameter enduro_parameters[] = {
    PUFFER_PARAMETER(Enduro, width, 640, 160, 2048, "width of the picture, px"),
    PUFFER_PARAMETER(Enduro, height, 480, 120, 2048, "height of the picture, px"),
    PUFFER_PARAMETER(Enduro, max_enemies, 10, 1, ENDURO_MAX_CARS, "most other cars at a time"),
    PUFFER_PARAMETER(Enduro, frameskip, 4, 1, 1000, "frames that a step plays"),
    PUFFER_PARAMETER(Enduro, day_frames, 13920, 16, 1000000, "frames of a day"),
    PUFFER_PARAMETER(Enduro, first_quota, 200, 1, 100000, "cars to pass on the first day"),
    PUFFER_PARAMETER(Enduro, quota, 300, 1, 100000, "cars to pass on every later day"),
    PUFFER_PARAMETER(Enduro, max_days, 10, 1, 1000, "days after which the race is cut off"),
    PUFFER_PARAMETER(Enduro, car_width, 16, 4, 28, "width of a car, px of a screen of 152 (a lane has 32)"),
    PUFFER_PARAMETER(Enduro, car_length, 4, 1, 6, "length of a car along the road"),
    PUFFER_PARAMETER(Enduro, reward_pass, 1, 0, 10, "reward for a car passed for the first time"),
    PUFFER_PARAMETER(Enduro, reward_repass, -0.1, -10, 0, "reward for a car that passes the player"),
    PUFFER_PARAMETER(Enduro, reward_day, 1, 0, 1000, "reward for a day whose quota was met"),
    PUFFER_PARAMETER(Enduro, reward_crash, -0.5, -10, 0, "reward for a crash"),
    PUFFER_PARAMETER(Enduro, reward_edge, -0.5, -10, 0, "reward for a touch of the edge of the road"),
    PUFFER_PARAMETER(Enduro, reward_crashed, -0.01, -10, 0, "reward for each frame after a crash without control"),
    PUFFER_PARAMETER(Enduro, reward_free_lane, 0.05, 0, 10, "reward for each frame of gaining with a free lane"),
    PUFFER_PARAMETER(Enduro, reward_streak, 0.001, 0, 1, "what each car passed adds to every frame's reward until a crash"),
    PUFFER_PARAMETER(Enduro, continuous, false, false, true, "actions are steering and throttle instead of keys"),
};

static const PufferMetric enduro_metrics[] = {
    PUFFER_METRIC(Enduro, score, "distance driven, 1 to 2 a frame"),
    PUFFER_METRIC(Enduro, perf, "days whose quota was met, as a share of max_days"),
    PUFFER_METRIC(Enduro, days_completed, "days whose quota was met"),
    PUFFER_METRIC(Enduro, passed, "cars passed"),
    PUFFER_METRIC(Enduro, repassed, "cars that passed the player"),
    PUFFER_METRIC(Enduro, crashes, "crashes into cars"),
    PUFFER_METRIC(Enduro, edge_hits, "touches of the edge of the road"),
};
/* clang-format on */

/* ---- The road --------------------------------------------------------------------------------------- */

static inline float enduro_speed_share(const Enduro *env) {
    return (env->speed - ENDURO_SPEED_MIN) * (1 / ENDURO_SPEED_RANGE);
}

/* Time of day, in phases. */
static inline float enduro_time(const Enduro *env) {
    return (float)env->day_frame * env->phase_per_frame;
}

static inline bool enduro_is_snow(const Enduro *env) {
    const float time = enduro_time(env);
    return time >= ENDURO_SNOW_PHASE && time < ENDURO_SNOW_PHASE + 1;
}

static inline bool enduro_is_fog(const Enduro *env) {
    const float time = enduro_time(env);
    return time >= ENDURO_FOG_FIRST && time < ENDURO_FOG_LAST + 1;
}

/* Size at this distance relative to the size beside the player. */
static inline float enduro_scale(float distance) {
    return ENDURO_FOCUS / (ENDURO_FOCUS + distance);
}

/* The row of the screen where the player's car is. */
static inline float enduro_row(const Enduro *env) {
    return ENDURO_ROW - ENDURO_ROW_SLIDE * enduro_speed_share(env);
}

/* From the middle of the road to its edges at this distance, in px beside the player. */
static inline float enduro_edge(const Enduro *env, float distance) {
    const float off = fabsf(distance - env->narrow_at) * (1 / ENDURO_NARROW_LENGTH);
    return ENDURO_ROAD_HALF - ENDURO_NARROWING * puffer_max(1 - off, 0);
}

static inline float enduro_lane_middle(int32_t lane) {
    static const float middles[ENDURO_LANES] = {-ENDURO_LANE, 0, ENDURO_LANE};
    return middles[lane];
}

static inline int32_t enduro_own_lane(const Enduro *env) {
    return (env->x > -0.5f * ENDURO_LANE) + (env->x >= 0.5f * ENDURO_LANE);
}

/* There is always a straight between a left and a right curve. */
static inline void enduro_begin_stretch(Enduro *env) {
    PufferRng *rng = &env->game.rng;
    env->stretch_end += ENDURO_STRETCH + puffer_random_below(rng, ENDURO_STRETCH_MORE);
    const bool first = puffer_random_below(rng, 2) == 0;
    env->turn = env->turn != 0 ? (first ? 0 : env->turn) : (first ? -1 : 1);
}

static inline void enduro_place_narrow(Enduro *env) {
    const int32_t straight = ENDURO_STRAIGHT + puffer_random_below(&env->game.rng, ENDURO_STRAIGHT_MORE);
    env->narrow_at = ENDURO_FAR + ENDURO_NARROW_LENGTH + (float)straight;
}

static inline void enduro_move_road(Enduro *env) {
    const float pace = 1 + enduro_speed_share(env);
    env->odometer += pace;
    if (env->odometer >= env->stretch_end) enduro_begin_stretch(env);
    env->curve += ENDURO_CURVE_EASE * ((float)env->turn - env->curve);
    env->heading += ENDURO_TURN * env->curve * pace;
    if (env->heading >= 1) env->heading -= 1;
    if (env->heading < 0) env->heading += 1;
    env->narrow_at -= pace;
    if (env->narrow_at < -ENDURO_NARROW_LENGTH) enduro_place_narrow(env);
    env->edge = enduro_edge(env, 0);
}

#endif
