/* Enduro from hand-made states: what a few frames make of them. Built with sanitizers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "enduro/enduro.h"

enum { FLOATS = ENDURO_FIRST_SLOT + ENDURO_SLOT * ENDURO_MAX_CARS + 10 };

static float observation[FLOATS], reward;
static int32_t action;

/* A game with no other cars, and none to come. */
static Enduro start(void) {
    Enduro env = {0};
    for (size_t i = 0; i < sizeof enduro_parameters / sizeof *enduro_parameters; i++) {
        const PufferParameter *row = &enduro_parameters[i];
        void *field = (char *)&env + row->offset;
        if (row->type == PUFFER_FLOAT32) *(float *)field = (float)row->value;
        if (row->type == PUFFER_INT32) *(int32_t *)field = (int32_t)row->value;
    }
    env.frameskip = 1;
    env.game.observations = observation;
    env.game.actions = &action;
    env.game.rewards = &reward;
    env.reward_free_lane = env.reward_streak = 0;
    puffer_seed(&env.game.rng, 1);
    enduro_reset(&env);
    env.spawn_frames = INT32_MAX;
    return env;
}

static PufferOutcome play(Enduro *env, int32_t what, int32_t frames) {
    PufferOutcome outcome = PUFFER_RUNNING;
    action = what;
    reward = 0;
    for (int32_t i = 0; i < frames; i++) outcome = enduro_step(env);
    return outcome;
}

static void check(const char *what, const char *figure, double found, double expected) {
    if (fabs(found - expected) < 1e-4) return;
    fprintf(stderr, "%s: %s is %g, expected %g\n", what, figure, found, expected);
    exit(1);
}

typedef struct {
    float distance;
    uint8_t lane, paint;
    bool paid;
} Car;

static void place(Enduro *env, int32_t index, Car car) {
    env->distances[index] = car.distance;
    env->middles[index] = enduro_lane_middle(car.lane);
    env->cars[index] = (EnduroCar){car.lane, car.paint, car.paid};
    env->ahead[car.lane] += index >= env->num_passed;
}

typedef struct {
    const char *name;
    float speed, x;
    int32_t num_cars, num_passed; /* the first of the cars are behind */
    Car cars[2];
    int32_t today, action;
    struct {
        float reward, speed, x;
        int32_t today, passed, repassed, crashes, edge_hits;
    } after; /* one frame */
} Case;

static const Case cases[] = {
    {"a car falls behind", 5, 0, 1, 0, {{-3.8f, 0, 0, 0}}, 7, ENDURO_COAST, {1, 5, 0, 8, 1, 0, 0, 0}},
    {"a car is not yet behind", 5, 0, 1, 0, {{-3.2f, 0, 0, 0}}, 7, ENDURO_COAST, {0, 5, 0, 7, 0, 0, 0, 0}},
    {"two at once",
     5,
     0,
     2,
     0,
     {{-3.8f, 0, 0, 0}, {-3.8f, 2, 0, 0}},
     7,
     ENDURO_COAST,
     {2, 5, 0, 9, 2, 0, 0, 0}},
    {"a car passes us", -2, 0, 1, 1, {{3.9f, 0, 0, 1}}, 7, ENDURO_COAST, {-0.1f, -2, 0, 6, 0, 1, 0, 0}},
    {"there is no debt", -2, 0, 1, 1, {{3.9f, 0, 0, 1}}, 0, ENDURO_COAST, {-0.1f, -2, 0, 0, 0, 1, 0, 0}},
    {"the quota stays met", -2, 0, 1, 1, {{3.9f, 0, 0, 1}}, 200, ENDURO_COAST, {0, -2, 0, 200, 0, 1, 0, 0}},
    {"its second time gives back",
     5,
     0,
     1,
     0,
     {{-3.8f, 0, 0, 1}},
     7,
     ENDURO_COAST,
     {0.1f, 5, 0, 8, 1, 0, 0, 0}},
    {"nothing to give back", 5, 0, 1, 0, {{-3.8f, 0, 0, 1}}, 200, ENDURO_COAST, {0, 5, 0, 201, 1, 0, 0, 0}},
    {"a crash", 5, 3, 1, 0, {{4.2f, 1, 0, 0}}, 7, ENDURO_COAST, {-0.5f, -2.5f, 3, 7, 0, 0, 1, 0}},
    {"a crash from behind",
     -2,
     -3,
     1,
     1,
     {{-4.1f, 1, 0, 0}},
     7,
     ENDURO_COAST,
     {-0.5f, -2.5f, -3, 7, 0, 0, 1, 0}},
    {"not yet a crash", 5, 3, 1, 0, {{4.6f, 1, 0, 0}}, 7, ENDURO_COAST, {0, 5, 3, 7, 0, 0, 0, 0}},
    {"between two cars",
     5,
     16,
     2,
     0,
     {{0, 1, 0, 0}, {0, 2, 0, 0}},
     7,
     ENDURO_COAST,
     {0, 5, 16, 7, 0, 0, 0, 0}},
    {"the right edge", 5, 39.8f, 0, 0, {{0, 0, 0, 0}}, 7, ENDURO_RIGHT, {-0.5f, 3.75f, 40, 7, 0, 0, 0, 1}},
    {"the left edge", 5, -39.8f, 0, 0, {{0, 0, 0, 0}}, 7, ENDURO_LEFT, {-0.5f, 3.75f, -40, 7, 0, 0, 0, 1}},
    {"beside the edge", 5, 39.8f, 0, 0, {{0, 0, 0, 0}}, 7, ENDURO_COAST, {0, 5, 39.8f, 7, 0, 0, 0, 0}},
    {"steering at full speed",
     7.5f,
     0,
     0,
     0,
     {{0, 0, 0, 0}},
     7,
     ENDURO_RIGHT,
     {0, 7.5f, 1.3f, 7, 0, 0, 0, 0}},
    {"steering at the least speed",
     -2.5f,
     0,
     0,
     0,
     {{0, 0, 0, 0}},
     7,
     ENDURO_LEFT,
     {0, -2.5f, -0.3f, 7, 0, 0, 0, 0}},
    {"the first gear",
     0,
     0,
     0,
     0,
     {{0, 0, 0, 0}},
     7,
     ENDURO_ACCELERATE,
     {0, 4 * 10 / 675.0f, 0, 7, 0, 0, 0, 0}},
    {"the fourth gear",
     7,
     0,
     0,
     0,
     {{0, 0, 0, 0}},
     7,
     ENDURO_ACCELERATE,
     {0, 7 + 2 * 10 / 675.0f, 0, 7, 0, 0, 0, 0}},
    {"no faster than full speed",
     7.5f,
     0,
     0,
     0,
     {{0, 0, 0, 0}},
     7,
     ENDURO_ACCELERATE,
     {0, 7.5f, 0, 7, 0, 0, 0, 0}},
    {"the brake", 5, 0, 0, 0, {{0, 0, 0, 0}}, 7, ENDURO_BRAKE, {0, 4.99f, 0, 7, 0, 0, 0, 0}},
    {"no slower than the least speed",
     -2.5f,
     0,
     0,
     0,
     {{0, 0, 0, 0}},
     7,
     ENDURO_BRAKE,
     {0, -2.5f, 0, 7, 0, 0, 0, 0}},
};

static void run_case(const Case *given) {
    Enduro env = start();
    env.speed = given->speed;
    env.x = given->x;
    env.num_cars = given->num_cars;
    env.num_passed = given->num_passed;
    for (int32_t i = 0; i < given->num_cars; i++) place(&env, i, given->cars[i]);
    env.today = given->today;
    play(&env, given->action, 1);
    check(given->name, "reward", reward, given->after.reward);
    check(given->name, "speed", env.speed, given->after.speed);
    check(given->name, "x", env.x, given->after.x);
    check(given->name, "today", env.today, given->after.today);
    check(given->name, "passed", env.passed, given->after.passed);
    check(given->name, "repassed", env.repassed, given->after.repassed);
    check(given->name, "crashes", env.crashes, given->after.crashes);
    check(given->name, "edge_hits", env.edge_hits, given->after.edge_hits);
}

/* 90 frames without control, thrown to the edge that is away from the other car, and only one crash. */
static void check_crash(void) {
    const char *what = "after a crash";
    Enduro env = start();
    env.speed = 5;
    env.x = 3;
    env.streak = 1;
    env.num_cars = 1;
    place(&env, 0, (Car){.distance = 4.2f, .lane = 1});
    play(&env, ENDURO_COAST, 1);
    check(what, "streak", env.streak, 0);
    play(&env, ENDURO_ACCELERATE, ENDURO_CRASH_FRAMES);
    check(what, "reward", reward, -0.01 * ENDURO_CRASH_FRAMES);
    check(what, "speed", env.speed, ENDURO_SPEED_MIN);
    check(what, "x", env.x, 40);
    check(what, "crashes", env.crashes, 1);
    play(&env, ENDURO_ACCELERATE, 1);
    check(what, "in control", env.speed > ENDURO_SPEED_MIN, true);
}

/* A car that still overlaps when control returns does no harm, until it has been left once. */
static void check_untouchable(void) {
    const char *what = "beside a car after a crash";
    Enduro env = start();
    env.speed = 0;
    env.num_cars = 1;
    env.crashed = env.untouchable = true;
    env.stun = 1;
    place(&env, 0, (Car){.distance = 2, .lane = 1});
    play(&env, ENDURO_COAST, 3);
    check(what, "crashes", env.crashes, 0);
    env.x = 32;
    play(&env, ENDURO_COAST, 1);
    env.x = 0;
    play(&env, ENDURO_COAST, 1);
    check(what, "crashes", env.crashes, 1);
}

static void check_edge(void) {
    Enduro env = start();
    env.x = 39.9f;
    env.speed = 5;
    play(&env, ENDURO_RIGHT, 1);
    play(&env, ENDURO_RIGHT, ENDURO_EDGE_FRAMES);
    check("after the edge", "x", env.x, 40 - ENDURO_EDGE_FRAMES * ENDURO_REBOUND);
    check("after the edge", "edge_hits", env.edge_hits, 1);
    play(&env, ENDURO_RIGHT, 1);
    check("after the edge", "in control", env.x > 40 - ENDURO_EDGE_FRAMES * ENDURO_REBOUND, true);
}

static void check_curve(void) {
    Enduro env = start();
    env.speed = 4;
    env.curve = 1;
    env.turn = 1;
    play(&env, ENDURO_COAST, 10);
    check("in a curve to the right", "x", env.x, -10 * 0.025 * 4);
}

static void check_snow(void) {
    Enduro env = start();
    env.speed = 7.5f;
    env.day_frame = ENDURO_SNOW_PHASE * env.day_frames / ENDURO_PHASES + 1;
    play(&env, ENDURO_RIGHT, 1);
    check("in the snow", "x", env.x, 1.3 * 0.6);
}

static void check_rewards_per_frame(void) {
    Enduro env = start();
    env.reward_free_lane = 0.05f;
    env.reward_streak = 0.001f;
    env.speed = 5;
    env.num_cars = 2;
    place(&env, 0, (Car){.distance = -3.8f, .lane = 0});
    place(&env, 1, (Car){.distance = 100, .lane = 0});
    play(&env, ENDURO_COAST, 1);
    check("with a free lane", "reward", reward, 1 + 0.001 + 0.05);
    env.cars[0].lane = 1; /* it is behind by now */
    play(&env, ENDURO_COAST, 1);
    check("with a car in the lane that is behind", "reward", reward, 0.001 + 0.05);
    env.ahead[0] = 0;
    place(&env, 1, (Car){.distance = 100, .lane = 1});
    play(&env, ENDURO_COAST, 1);
    check("with a car ahead in the lane", "reward", reward, 0.001);
    env.num_cars = env.num_passed = env.ahead[1] = 0;
    env.speed = -1;
    play(&env, ENDURO_COAST, 1);
    check("with a free lane, but slower than the traffic", "reward", reward, 0.001);
}

static void check_days(void) {
    Enduro env = start();
    env.max_days = 2;
    env.day_frame = env.day_frames - 1;
    env.today = 199;
    check("a day", "end without its quota", play(&env, ENDURO_COAST, 1), PUFFER_TERMINATED);
    env = start();
    env.max_days = 2;
    env.day_frame = env.day_frames - 1;
    env.today = 200;
    check("a day", "end with its quota", play(&env, ENDURO_COAST, 1), PUFFER_RUNNING);
    check("a day", "reward", reward, 1);
    check("the next day", "quota", env.todays_quota, 300);
    check("the next day", "cars passed", env.today, 0);
    env.day_frame = env.day_frames - 1;
    env.today = 300;
    check("the last day", "end", play(&env, ENDURO_COAST, 1), PUFFER_TRUNCATED);
    check("the last day", "perf", env.perf, 1);
}

/* Invariants of traffic: of cars within 6.5 lengths of each other, one lane has none, the order by distance
 * holds, and the cars ahead are counted. */
static void check_traffic(const Enduro *env) {
    int32_t ahead[ENDURO_LANES] = {0};
    for (int32_t i = env->num_passed; i < env->num_cars; i++) ahead[env->cars[i].lane]++;
    for (int32_t i = 0; i < ENDURO_LANES; i++) {
        if (env->ahead[i] != ahead[i]) check("the traffic", "cars ahead in a lane", env->ahead[i], ahead[i]);
    }
    for (int32_t i = 0; i < env->num_cars; i++) {
        int32_t taken = 0;
        for (int32_t j = i; j < env->num_cars; j++) {
            const float apart = env->distances[j] - env->distances[i];
            if (apart < 0) check("the traffic", "order", apart, 0);
            if (apart < ENDURO_CLEAR_LENGTHS * env->car_length - 1e-3f) taken |= 1 << env->cars[j].lane;
        }
        if (taken == ENDURO_ALL_LANES) check("the traffic", "lanes taken", taken, 0);
    }
    if (env->num_passed < 0 || env->num_passed > env->num_cars)
        check("the traffic", "passed", env->num_passed, 0);
}

/* Random play at every speed and density: the traffic keeps its rules, and the day's count its balance. */
static void check_random_play(int32_t max_cars) {
    Enduro env = start();
    env.max_enemies = max_cars;
    enduro_reset(&env);
    env.todays_quota = INT32_MAX;
    for (int32_t i = 0; i < 100000; i++) {
        const Enduro before = env;
        if (i / 300 % 3 == 0) env.speed = puffer_min(env.speed, -0.5f);
        env.day = i / 5000 % 8;
        env.day_frame = 0;
        play(&env, puffer_random_below(&env.game.rng, ENDURO_ACTIONS), 1);
        check_traffic(&env);
        const float debt = env.repassed - before.repassed;
        if ((float)before.today < debt) continue;
        check("random play", "today", env.today, before.today + (env.passed - before.passed) - debt);
    }
    check("random play", "cars passed", env.passed > 100, true);
    check("random play", "cars that passed us", env.repassed > 10, true);
    check("random play", "crashes", env.crashes > 10, true);
    check("random play", "edges", env.edge_hits > 10, true);
}

int main(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i]);
    check_crash();
    check_untouchable();
    check_edge();
    check_curve();
    check_snow();
    check_rewards_per_frame();
    check_days();
    check_random_play(10);
    check_random_play(ENDURO_MAX_CARS);
    return 0;
}
