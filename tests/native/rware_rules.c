/* Moves of warehouse robots with known outcomes: circles, swaps, lines, loads; and what must hold for ever.
 * Prints what differs and fails. Built with the sanitizers. */
#include <stdio.h>
#include <stdlib.h>

#include "rware/rware.h"

enum { MAX_ROBOTS = 6, STEPS = 100000 };
enum { R, D, L, U }; /* headings: right, down, left, up */

static int faults;

static void check(bool good, const char *name, const char *what) {
    if (good) return;
    printf("%s: %s\n", name, what);
    faults++;
}

static Rware *make(int32_t map, int32_t robots, int32_t requests) {
    Rware *env = calloc(1, sizeof *env);
    env->num_agents = robots;
    env->map_choice = map;
    env->num_requested_shelves = requests;
    env->max_steps = 500;
    env->reward_lift = env->reward_deliver = 0.5f;
    env->reward_return = 1;
    env->game.observations = calloc((size_t)robots * RWARE_NUMBERS, sizeof(float));
    env->game.actions = calloc((size_t)robots, sizeof(int32_t));
    env->game.rewards = calloc((size_t)robots, sizeof(float));
    rware_reset(env);
    return env;
}

static void destroy(Rware *env) {
    free(env->game.observations);
    free((void *)env->game.actions);
    free(env->game.rewards);
    free(env);
}

/* ---- Moves on the tiny map --------------------------------------------------------------------------- */

typedef struct {
    int32_t row, column, heading, load, action;
    int32_t to_row, to_column;
} Robot;

#define GO   RWARE_FORWARD
#define WAIT RWARE_STAY

static const struct {
    const char *name;
    int32_t robots;
    Robot robot[MAX_ROBOTS];
} cases[] = {
    {"a robot moves to where it looks", 1, {{0, 3, D, 0, GO, 1, 3}}},
    {"a robot stays on the map", 1, {{0, 3, U, 0, GO, 0, 3}}},
    {"an unknown action stays", 1, {{0, 3, D, 0, 5, 0, 3}}},
    {"a negative action stays", 1, {{0, 3, D, 0, -1, 0, 3}}},
    {"a robot without a shelf drives under shelves", 1, {{0, 1, D, RWARE_EMPTY, GO, 1, 1}}},
    {"a robot with a requested shelf does not", 1, {{0, 1, D, RWARE_CARRY, GO, 0, 1}}},
    {"a robot with a shelf to be returned does not", 1, {{0, 1, D, RWARE_RETURN, GO, 0, 1}}},
    {"a robot with a requested shelf enters a goal", 1, {{9, 4, D, RWARE_CARRY, GO, 10, 4}}},
    {"a robot with a shelf to be returned does not enter it", 1, {{9, 4, D, RWARE_RETURN, GO, 9, 4}}},
    {"two robots do not change places", 2, {{0, 3, R, 0, GO, 0, 3}, {0, 4, L, 0, GO, 0, 4}}},
    {"a robot does not enter the cell of one that waits",
     2,
     {{0, 3, R, 0, GO, 0, 3}, {0, 4, R, 0, WAIT, 0, 4}}},
    {"nor of one that turns", 2, {{0, 3, R, 0, GO, 0, 3}, {0, 4, R, 0, RWARE_LEFT, 0, 4}}},
    {"a line moves", 3, {{0, 3, R, 0, GO, 0, 4}, {0, 5, R, 0, GO, 0, 6}, {0, 4, R, 0, GO, 0, 5}}},
    {"a line behind one that cannot move stays",
     3,
     {{0, 7, R, 0, GO, 0, 7}, {0, 9, R, 0, GO, 0, 9}, {0, 8, R, 0, GO, 0, 8}}},
    {"a line behind a swap stays",
     3,
     {{0, 3, R, 0, GO, 0, 3}, {0, 4, R, 0, GO, 0, 4}, {0, 5, L, 0, GO, 0, 5}}},
    {"of two that want a free cell the first gets it", 2, {{0, 3, R, 0, GO, 0, 4}, {0, 5, L, 0, GO, 0, 5}}},
    {"whoever follows the other stays",
     3,
     {{0, 3, R, 0, GO, 0, 4}, {0, 5, L, 0, GO, 0, 5}, {0, 6, L, 0, GO, 0, 6}}},
    {"a robot that waits for another lets it go first",
     3,
     {{0, 6, L, 0, GO, 0, 5}, {0, 3, R, 0, GO, 0, 3}, {0, 5, L, 0, GO, 0, 4}}},
    {"a circle of four turns",
     4,
     {{0, 3, R, 0, GO, 0, 4}, {0, 4, D, 0, GO, 1, 4}, {1, 4, L, 0, GO, 1, 3}, {1, 3, U, 0, GO, 0, 3}}},
    {"a circle of six turns",
     6,
     {{0, 3, R, 0, GO, 0, 4},
      {0, 4, R, 0, GO, 0, 5},
      {0, 5, D, 0, GO, 1, 5},
      {1, 5, L, 0, GO, 1, 4},
      {1, 4, L, 0, GO, 1, 3},
      {1, 3, U, 0, GO, 0, 3}}},
    {"a circle with one that waits stays",
     4,
     {{0, 3, R, 0, GO, 0, 3}, {0, 4, D, 0, GO, 0, 4}, {1, 4, L, 0, WAIT, 1, 4}, {1, 3, U, 0, GO, 1, 3}}},
    {"whoever wants to join a circle stays",
     5,
     {{0, 5, L, 0, GO, 0, 5},
      {0, 4, D, 0, GO, 1, 4},
      {1, 4, L, 0, GO, 1, 3},
      {1, 3, U, 0, GO, 0, 3},
      {0, 3, R, 0, GO, 0, 4}}},
};

static void check_cases(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Rware *env = make(1, cases[i].robots, 1);
        for (int32_t k = 0; k < cases[i].robots; k++) rware_remove_robot(env, k);
        for (int32_t k = 0; k < cases[i].robots; k++) {
            const Robot *robot = &cases[i].robot[k];
            env->headings[k] = (uint8_t)robot->heading;
            env->loads[k] = (uint8_t)robot->load;
            ((int32_t *)env->game.actions)[k] = robot->action;
            rware_place_robot(env, k, rware_cell(robot->row, robot->column));
        }
        rware_step(env);
        for (int32_t k = 0; k < cases[i].robots; k++) {
            const Robot *robot = &cases[i].robot[k];
            const bool there = env->cells[k] == rware_cell(robot->to_row, robot->to_column);
            check(there, cases[i].name, "where a robot is");
            check(env->robot[env->cells[k]] == k && !rware_is_free(env, env->cells[k]), cases[i].name,
                  "the map");
        }
        destroy(env);
    }
}

/* ---- A delivery from end to end ------------------------------------------------------------------------ */

static float act(Rware *env, int32_t action) {
    ((int32_t *)env->game.actions)[0] = action;
    env->game.rewards[0] = 0;
    rware_step(env);
    return env->game.rewards[0];
}

static void check_delivery(void) {
    const char *name = "a delivery";
    Rware *env = make(1, 1, 1);
    const int32_t shelf = rware_cell(8, 2), goal = rware_cell(10, 4);
    env->map[rware_pick(env, RWARE_REQUESTED, true)] -= RWARE_REQUESTED - RWARE_SHELF;
    env->map[shelf] = RWARE_REQUESTED;
    rware_remove_robot(env, 0);
    env->headings[0] = D;
    rware_place_robot(env, 0, shelf);
    check(act(env, RWARE_LIFT) == 0.5f && env->loads[0] == RWARE_CARRY, name, "lifts a requested shelf");
    check(rware_kind(env, shelf) == RWARE_PLACE, name, "leaves a free place");
    check(act(env, RWARE_LIFT) == 0 && env->loads[0] == RWARE_CARRY, name, "puts it down nowhere else");
    const int32_t there[] = {GO, GO, RWARE_LEFT, GO, GO};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) act(env, there[i]);
    check(env->cells[0] == goal, name, "drives to the goal");
    check(act(env, RWARE_LIFT) == 0.5f && env->loads[0] == RWARE_RETURN, name, "empties the shelf");
    check(act(env, RWARE_LIFT) == 0 && env->deliveries == 0, name, "has still to return it");
    const int32_t back[] = {RWARE_LEFT, RWARE_LEFT, GO, GO, RWARE_RIGHT, GO, GO};
    for (size_t i = 0; i < sizeof back / sizeof *back; i++) act(env, back[i]);
    check(env->cells[0] == shelf, name, "drives back");
    check(act(env, RWARE_LIFT) == 1 && env->loads[0] == RWARE_EMPTY, name, "returns it");
    check(rware_kind(env, shelf) == RWARE_SHELF || rware_kind(env, shelf) == RWARE_REQUESTED, name,
          "stands again");
    check(env->deliveries == 1, name, "is counted");
    destroy(env);
}

/* ---- What holds at any time ---------------------------------------------------------------------------- */

static int32_t count(const Rware *env, int32_t kind) {
    int32_t found = 0;
    for (int32_t cell = 0; cell < RWARE_CELLS; cell++) found += rware_kind(env, cell) == kind;
    return found;
}

static void check_totals(const Rware *env, const char *name) {
    int32_t carried = 0, asked = count(env, RWARE_REQUESTED), robots = 0;
    for (int32_t i = 0; i < env->num_agents; i++) {
        carried += env->loads[i] != RWARE_EMPTY;
        asked += env->loads[i] == RWARE_CARRY;
    }
    for (int32_t cell = 0; cell < RWARE_CELLS; cell++) robots += !rware_is_free(env, cell);
    const int32_t standing = count(env, RWARE_SHELF) + count(env, RWARE_REQUESTED);
    check(asked == env->num_requested_shelves, name, "the number of requests changes");
    check(standing + carried == rware_count(env, '#'), name, "a shelf appears or is lost");
    check(count(env, RWARE_PLACE) == carried, name, "a place appears or is lost");
    check(count(env, RWARE_GOAL) == rware_count(env, 'G'), name, "a goal appears or is lost");
    check(robots == env->num_agents, name, "a robot appears or is lost");
}

/* A robot that looks for work: random steps, but it lifts and puts down wherever that does something. */
static int32_t work(Rware *env, int32_t i, PufferRng *rng) {
    const int32_t kind = rware_kind(env, env->cells[i]);
    static const int32_t useful[3] = {RWARE_REQUESTED, RWARE_GOAL, RWARE_PLACE};
    if (kind == useful[env->loads[i]]) return RWARE_LIFT;
    const int32_t action = puffer_random_below(rng, 8);
    return action < 5 ? action : RWARE_FORWARD;
}

static void check_for_ever(int32_t map, int32_t robots, int32_t requests) {
    Rware *env = make(map, robots, requests);
    PufferRng rng;
    int32_t completed = 0;
    puffer_seed(&rng, 1);
    for (int32_t step = 0; step < STEPS / robots && faults == 0; step++) {
        for (int32_t i = 0; i < robots; i++) ((int32_t *)env->game.actions)[i] = work(env, i, &rng);
        env->game.episode_length = step % env->max_steps + 1;
        if (rware_step(env) != PUFFER_RUNNING) {
            completed += env->deliveries;
            rware_reset(env);
        }
        if (step % 5 == 0) check_totals(env, "under random work");
    }
    check(completed > 0, "under random work", "nothing is ever delivered");
    destroy(env);
}

int main(void) {
    check_cases();
    check_delivery();
    check_for_ever(1, 4, 4);
    check_for_ever(1, 20, 12);
    check_for_ever(2, 16, 64);
    check_for_ever(3, 64, 80);
    return faults > 0;
}
